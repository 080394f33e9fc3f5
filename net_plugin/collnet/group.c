/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a group, and what it can do. */
#include "net_plugin/collnet/group.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/settings.h"

static const char *const mode_names[] = { "off", "full", "bf16", "fp16" };

enum collnet_mode collnet_mode(void) {
  return (enum collnet_mode)param_enum(PARAM_COLLNET);
}

const char *collnet_mode_name(enum collnet_mode mode) {
  return (size_t)mode < sizeof(mode_names) / sizeof(mode_names[0]) ? mode_names[mode] : "unknown";
}

bool collnet_supports(enum reduce_type type, enum reduce_op op) {
  return (unsigned)type < REDUCE_TYPES && (unsigned)op < REDUCE_OPS;
}

/* ---- life ---- */

struct collnet_group *group_create(enum collnet_mode mode, unsigned members, unsigned member,
                                   struct nic_totals *totals) {
  struct collnet_group *group = calloc(1, sizeof(*group));
  if (!group) {
    return NULL;
  }
  *group = (struct collnet_group){ .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .mode = mode,
                                   .variant = reduce_fastest(),
                                   .members = members,
                                   .member = member,
                                   .totals = totals };
  group->spare_memory.memory = &group->unregistered;
  group->paths = calloc(collnet_path_count(group), sizeof(*group->paths));
  bool is_complete = group->paths != NULL;
  for (unsigned i = 0; i < COLLNET_REQUESTS; i++) {
    group->pieces[i].group = group;
    group->pieces[i].messages =
        calloc(collnet_path_count(group), sizeof(*group->pieces[i].messages));
    is_complete &= group->pieces[i].messages != NULL;
  }
  if (!is_complete) {
    group_destroy(group);
    return NULL;
  }
  return group;
}

void group_destroy(struct collnet_group *group) {
  for (size_t i = 0; group->paths && i < collnet_path_count(group); i++) {
    if (group->paths[i].connection) {
      connection_detach(group->paths[i].connection);
    }
  }
  for (unsigned i = 0; i < COLLNET_REQUESTS; i++) {
    free(group->pieces[i].messages);
    free(group->pieces[i].staging.data);
    free(group->spare_staging[i].data);
  }
  free(group->paths);
  free(group);
}

static void count_up(struct collnet_group *group, enum nic_counter counter, uint64_t more) {
  atomic_fetch_add_explicit(&group->totals->counts[counter], more, memory_order_relaxed);
}

void group_count(struct collnet_group *group, size_t bytes) {
  const struct reduce_counters *now = &group->counters, *before = &group->reported;
  count_up(group, NIC_COLLNET_CALLS, 1);
  count_up(group, NIC_COLLNET_BYTES, bytes);
  count_up(group, NIC_COLLNET_ROUNDED, now->elements - before->elements);
  count_up(group, NIC_COLLNET_OVERFLOWS, now->overflows - before->overflows);
  count_up(group, NIC_COLLNET_UNDERFLOWS, now->underflows - before->underflows);
  group->reported = *now;
}

static void report_rounding(const struct collnet_group *group) {
  if (group->counters.overflows) {
    bool is_fp16 = group->mode == COLLNET_FP16;
    LOG_WARN("CollNet: %llu of %llu elements overflowed to infinity in %s, which ends at %s. "
             "STRATUS_COLLNET=%s goes on to %s",
             (unsigned long long)group->counters.overflows,
             (unsigned long long)group->counters.elements, collnet_mode_name(group->mode),
             is_fp16 ? "65504" : "3.39e38", is_fp16 ? "bf16" : "full",
             is_fp16 ? "3.39e38" : "3.40e38");
  }
}

void collnet_close(struct collnet_group *group) {
  if (group) {
    report_rounding(group);
    group_destroy(group);
  }
}
