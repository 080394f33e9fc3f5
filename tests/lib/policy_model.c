/* SPDX-License-Identifier: Apache-2.0 */
/* See policy_model.h. */
#include "tests/lib/policy_model.h"

#include "common/random.h"

#define MOST_LEVEL (FLOW_COUNT_GUESS + 3u)
#define STEP_NS 3000000ull /* of measurements, about LIMIT_SOON_NS */

static unsigned flows_of(const struct policy_model *model) {
  unsigned level = model->shared.count.level;
  return level < FLOW_COUNT_GUESS ? 1 : model->first_flows << (level - FLOW_COUNT_GUESS);
}

void policy_model_init(struct policy_model *model, const struct policy_model *config,
                       uint64_t seed) {
  *model = *config;
  model->random = seed;
  policy_shared_init(&model->shared);
  model->shared.compression.is_asked = true;
  flow_count_join(&model->shared.count, MOST_LEVEL);
  flow_count_changed(&model->shared.count, (int)flows_of(model));
}

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t noise(struct policy_model *model, uint64_t rate) {
  uint64_t percent = model->noise_percent;
  uint64_t drawn = percent > 0 ? random_next(&model->random) % (2 * percent + 1) : 0;
  return rate * (100 - percent + drawn) / 100;
}

struct pace {
  uint64_t bytes, loaded_ns;
  bool is_network;
};

/* What is delivered in a step. */
static struct pace pace_of(struct policy_model *model, bool is_coding) {
  uint64_t flows = flows_of(model);
  uint64_t coded = is_coding ? model->coded_percent : 100;
  uint64_t nic = noise(model, model->nic) * 100 / coded;
  uint64_t caps = least(nic, flows * noise(model, model->cap) * 100 / coded);
  uint64_t cpu = noise(model, is_coding ? model->coding_cpu : model->cpu);
  if (model->message_bytes == 0) {
    uint64_t rate = least(caps, cpu);
    return (struct pace){ rate * STEP_NS / POLICY_MODEL_MS, STEP_NS, caps < cpu };
  }
  /* The bursts of all flows at the NIC's rate or the threads', the rest as flows are capped. */
  uint64_t burst = least(flows * model->burst_bytes, model->message_bytes);
  uint64_t rest_ns = (model->message_bytes - burst) * POLICY_MODEL_MS / least(caps, cpu);
  uint64_t message_ns = burst * POLICY_MODEL_MS / least(nic, cpu) + rest_ns;
  uint64_t cycle_ns = message_ns + model->pause_ns;
  return (struct pace){ model->message_bytes * STEP_NS / cycle_ns, message_ns * STEP_NS / cycle_ns,
                        2 * rest_ns > message_ns && caps < cpu };
}

static void pass_lane(struct policy_model *model, const struct pace *pace, uint64_t wire_bytes,
                      unsigned changes) {
  struct limit_window passed = { .in_flight_ns = pace->loaded_ns };
  passed.acked_bytes = wire_bytes;
  passed.network_ns = pace->is_network ? pace->loaded_ns : 0;
  if (model->shared.count.changes == changes) { /* the others began before the change */
    policy_shared_passed(&model->shared, &passed, model->now_ns);
  }
}

static void note_encoded(struct policy_model *model, uint64_t bytes) {
  uint64_t ps =
      model->coding_ps > 0 ? model->coding_ps : POLICY_MODEL_MS * 1000 / model->coding_cpu;
  struct policy_encoded encoded = { .bytes = (uint32_t)bytes,
                                    .coded_bytes = (uint32_t)(bytes * model->coded_percent / 100),
                                    .took_ns = bytes * ps / 1000 };
  compression_encoded(&model->shared.compression, &encoded);
}

static void pass(struct policy_model *model) {
  struct compression *compression = &model->shared.compression;
  bool is_coding = model->coded_percent > 0 && compression->is_on;
  struct pace pace = pace_of(model, is_coding);
  unsigned flows = flows_of(model), changes = model->shared.count.changes;
  if (is_coding) {
    note_encoded(model, pace.bytes);
  }
  struct limit_window passed = { .loaded_ns = pace.loaded_ns, .bytes = pace.bytes };
  policy_shared_passed(&model->shared, &passed, model->now_ns);
  uint64_t wire_bytes = is_coding ? pace.bytes * model->coded_percent / 100 : pace.bytes;
  for (unsigned i = 0; i < flows; i++) {
    pass_lane(model, &pace, wire_bytes / flows, changes);
  }
  model->on_ns += is_coding ? STEP_NS : 0;
}

void policy_model_run(struct policy_model *model, uint64_t duration_ns) {
  for (uint64_t end_ns = model->now_ns + duration_ns; model->now_ns < end_ns;) {
    model->now_ns += STEP_NS;
    unsigned before = model->shared.count.level, flows = flows_of(model);
    pass(model);
    model->changes += model->shared.count.level != before;
    flow_count_changed(&model->shared.count, (int)flows_of(model) - (int)flows);
  }
}
