/* SPDX-License-Identifier: Apache-2.0 */
/* flow_probe: the steps of measuring one flow. */
#include "net_plugin/policy/flow_probe.h"

bool flow_probe_is_wanted(const struct flow_probe *probe, uint64_t now_ns) {
  if (!probe) {
    return false;
  }
  bool may_be_better = probe->ps_per_byte == 0 || probe->ps_per_byte > FLOW_PROBE_FAST_PS_PER_BYTE;
  return probe->step == FLOW_PROBE_IDLE && may_be_better && probe->rounds < FLOW_PROBE_ROUNDS &&
         now_ns >= probe->next_ns;
}

void flow_probe_start(struct flow_probe *probe, const void *owner, unsigned lane) {
  probe->step = FLOW_PROBE_ASKING;
  probe->owner = owner;
  probe->lane = lane;
  probe->is_due = true;
  probe->frames = 0;
}

uint32_t flow_probe_ask(struct flow_probe *probe, const void *owner, unsigned lane, uint64_t token,
                        uint64_t now_ns) {
  if (!flow_probe_has(probe, owner, lane) || !probe->is_due) {
    return 0;
  }
  probe->is_due = false;
  probe->token = token;
  probe->sent_ns = now_ns;
  return probe->step == FLOW_PROBE_ASKING ? 0 : FLOW_PROBE_BYTES;
}

static void flow_probe_end(struct flow_probe *probe, uint64_t now_ns) {
  probe->step = FLOW_PROBE_IDLE;
  probe->next_ns = now_ns + (FLOW_PROBE_PAUSE_NS << probe->rounds);
  probe->rounds++;
}

/* The answer's own way is not the flow's doing; but it may have been delayed, that once. */
static void flow_probe_time(struct flow_probe *probe, uint64_t elapsed_ns) {
  uint64_t half_ns = elapsed_ns / 2;
  uint64_t bytes_ns = elapsed_ns - (probe->answer_ns < half_ns ? probe->answer_ns : half_ns);
  uint64_t sample = bytes_ns >= UINT32_MAX ? UINT32_MAX : bytes_ns * 1000 / FLOW_PROBE_BYTES;
  sample = sample < 1 ? 1 : sample;
  if (probe->ps_per_byte == 0 || sample < probe->ps_per_byte) {
    probe->ps_per_byte = (uint32_t)sample;
  }
  probe->frames++;
}

void flow_probe_answered(struct flow_probe *probe, const void *owner, unsigned lane, uint64_t token,
                         uint64_t now_ns) {
  /* A later token answers the earlier ones of its lane as well. */
  if (!flow_probe_has(probe, owner, lane) || probe->is_due || token < probe->token) {
    return;
  }
  uint64_t elapsed_ns = now_ns > probe->sent_ns ? now_ns - probe->sent_ns : 0;
  switch (probe->step) {
  case FLOW_PROBE_ASKING:
    probe->answer_ns = elapsed_ns;
    probe->step = FLOW_PROBE_FILLING;
    break;
  case FLOW_PROBE_FILLING:
    probe->step = FLOW_PROBE_TIMING;
    break;
  default:
    flow_probe_time(probe, elapsed_ns);
    if (probe->frames == FLOW_PROBE_FRAMES || probe->ps_per_byte <= FLOW_PROBE_FAST_PS_PER_BYTE) {
      flow_probe_end(probe, now_ns);
      return;
    }
    break;
  }
  probe->is_due = true;
}

void flow_probe_drop(struct flow_probe *probe, const void *owner, uint64_t lanes) {
  if ((flow_probe_lanes(probe, owner) & lanes) != 0) {
    probe->step = FLOW_PROBE_IDLE;
  }
}
