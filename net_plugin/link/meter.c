/* SPDX-License-Identifier: Apache-2.0 */
/* meter: the steps of measuring one flow. */
#include "net_plugin/link/meter.h"

bool meter_is_wanted(const struct meter *meter, uint64_t now_ns) {
  if (!meter) {
    return false;
  }
  bool may_be_better = meter->ps_per_byte == 0 || meter->ps_per_byte > METER_FAST_PS_PER_BYTE;
  return meter->step == METER_IDLE && may_be_better && meter->rounds < METER_ROUNDS &&
         now_ns >= meter->next_ns;
}

void meter_start(struct meter *meter, const void *link, unsigned lane) {
  meter->step = METER_ASKING;
  meter->link = link;
  meter->lane = lane;
  meter->is_due = true;
  meter->frames = 0;
}

uint32_t meter_ask(struct meter *meter, const void *link, unsigned lane, uint64_t token,
                   uint64_t now_ns) {
  if (!meter_has(meter, link, lane) || !meter->is_due) {
    return 0;
  }
  meter->is_due = false;
  meter->token = token;
  meter->sent_ns = now_ns;
  return meter->step == METER_ASKING ? 0 : METER_BYTES;
}

static void meter_end(struct meter *meter, uint64_t now_ns) {
  meter->step = METER_IDLE;
  meter->next_ns = now_ns + (METER_PAUSE_NS << meter->rounds);
  meter->rounds++;
}

/* The answer's own way is not the flow's doing; but it may have been delayed, that once. */
static void meter_time(struct meter *meter, uint64_t elapsed_ns) {
  uint64_t half_ns = elapsed_ns / 2;
  uint64_t bytes_ns = elapsed_ns - (meter->answer_ns < half_ns ? meter->answer_ns : half_ns);
  uint64_t sample = bytes_ns >= UINT32_MAX ? UINT32_MAX : bytes_ns * 1000 / METER_BYTES;
  sample = sample < 1 ? 1 : sample;
  if (meter->ps_per_byte == 0 || sample < meter->ps_per_byte) {
    meter->ps_per_byte = (uint32_t)sample;
  }
  meter->frames++;
}

bool meter_answered(struct meter *meter, const void *link, unsigned lane, uint64_t token,
                    uint64_t now_ns) {
  /* A later token answers the earlier ones of its lane as well. */
  if (!meter_has(meter, link, lane) || meter->is_due || token < meter->token) {
    return false;
  }
  uint64_t elapsed_ns = now_ns > meter->sent_ns ? now_ns - meter->sent_ns : 0;
  switch (meter->step) {
  case METER_ASKING:
    meter->answer_ns = elapsed_ns;
    meter->step = METER_FILLING;
    break;
  case METER_FILLING:
    meter->step = METER_TIMING;
    break;
  default:
    meter_time(meter, elapsed_ns);
    if (meter->frames == METER_FRAMES || meter->ps_per_byte <= METER_FAST_PS_PER_BYTE) {
      meter_end(meter, now_ns);
      return false;
    }
    break;
  }
  meter->is_due = true;
  return true;
}

void meter_drop(struct meter *meter, const void *link, uint64_t lanes) {
  if ((meter_lanes(meter, link) & lanes) != 0) {
    meter->step = METER_IDLE;
  }
}
