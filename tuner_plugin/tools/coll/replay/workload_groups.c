/* SPDX-License-Identifier: Apache-2.0 */
/* workload: the groups of ranks that events name. */
#include <string.h>

#include "tuner_plugin/tools/coll/replay/workload_parts.h"

enum { KIND_ONLY = WORKLOAD_KIND_ONLY };

static const struct field group_fields[] = {
  { "name", KIND_ONLY, KIND_ONLY, fields_read_name, offsetof(struct workload_group, name), 1,
    WORKLOAD_NAME_BYTES_MAX },
  { "size", 0, KIND_ONLY, fields_read_int, offsetof(struct workload_group, size), 1,
    WORKLOAD_GROUP_RANKS_MAX },
  { "stride", KIND_ONLY, KIND_ONLY, fields_read_int, offsetof(struct workload_group, stride), 1,
    WORKLOAD_GROUP_RANKS_MAX },
};

static int check_group_name(struct fields_reader *reader, const struct place *place,
                            const struct workload *workload, size_t i) {
  const struct place name = { place, "name", 0 };
  if (!strcmp(workload->groups[i].name, "world"))
    return fields_fail(reader, &name, "\"world\" is the group of all ranks, expected another name");
  for (size_t other = 0; other < i; other++) {
    if (!strcmp(workload->groups[other].name, workload->groups[i].name))
      return fields_fail(reader, &name, "\"%s\" is also groups[%zu], expected another name",
                         workload->groups[i].name, other);
  }
  return 0;
}

int workload_read_groups(struct fields_reader *reader, const struct place *place,
                         const json_t *value, const struct field *field, void *to) {
  struct workload *workload = to;
  void *entries;
  int result = workload_open_list(reader, place, value, field, sizeof *workload->groups, &entries,
                                  &workload->group_count);
  if (result < 0)
    return result;
  workload->groups = entries;
  for (size_t i = 0; i < workload->group_count && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = fields_read_object(reader, &entry, json_array_get(value, i), group_fields,
                                COUNT_OF(group_fields), KIND_ONLY, "a group", &workload->groups[i]);
    if (result == 0)
      result = check_group_name(reader, &entry, workload, i);
  }
  return result;
}
