/* SPDX-License-Identifier: Apache-2.0 */
/* workload: the list of events, and the groups of ranks that they name. An event becomes one item
 * of the list in memory, but an exchange as many as it has sends and receives. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/coll/replay/workload_parts.h"

#define ITEM(member) offsetof(struct plan_item, member)

/* ---- groups ---- */

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

/* ---- words ---- */

static int read_operation(struct fields_reader *reader, const struct place *place,
                          const json_t *value, const struct field *field, void *to) {
  (void)field;
  return fields_read_word(
      reader, place, value,
      "all_reduce, all_gather, reduce_scatter, broadcast, reduce, sendrecv or alltoall", NULL, to);
}

static int read_redop(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  (void)field;
  return fields_read_word(reader, place, value, "sum, prod, max, min, avg or mulsum", NULL, to);
}

static int read_group(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  const struct workload *workload = reader->context->workload;
  int result = fields_want(reader, place, value, JSON_STRING, "the name of a group");
  (void)field;
  if (result < 0)
    return result;
  size_t i = 0;
  while (i < workload->group_count &&
         strcmp(workload->groups[i].name, json_string_value(value)) != 0)
    i++;
  bool is_world = !strcmp(json_string_value(value), "world");
  if (i == workload->group_count && !is_world)
    return fields_fail(reader, place, "\"%.64s\", expected \"world\" or a name of groups",
                       json_string_value(value));
  *(int *)to = is_world ? PLAN_WORLD : (int)i + 1;
  return 0;
}

/* ---- whose event it is ---- */

static int read_place(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  int rank = 0;
  int result = fields_read_int(reader, place, value, field, &rank);
  *(int *)to = rank + 1;
  return result;
}

static int read_only(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  static const struct field only_fields[] = {
    { "group", KIND_ONLY, KIND_ONLY, read_group, offsetof(struct plan_only, group), 0, 0 },
    { "rank", KIND_ONLY, KIND_ONLY, read_place, offsetof(struct plan_only, place), 0,
      WORKLOAD_GROUP_RANKS_MAX - 1 },
  };
  (void)field;
  return fields_read_object(reader, place, value, only_fields, COUNT_OF(only_fields), KIND_ONLY,
                            "such an object", to);
}

#define ONLY_FIELD                                                                                 \
  { "only", 0, KIND_ONLY, read_only, ITEM(only), 0, 0 }

/* ---- ids ---- */

/* Communication gets the next number, by which others know it; its id, if it has one, is kept. */
static int read_id(struct fields_reader *reader, const struct place *place, const json_t *value,
                   const struct field *field, void *to) {
  struct workload_context *context = reader->context;
  char key[16];
  int id = 0;
  int result = fields_read_int(reader, place, value, field, &id);
  if (result < 0)
    return result;
  snprintf(key, sizeof key, "%d", id);
  if (json_object_get(context->ids, key))
    return fields_fail(reader, place, "%d is also the id of another collective or exchange", id);
  const struct plan_item *item = to;
  if (json_object_set_new(context->ids, key, json_integer(item - context->workload->events)))
    return workload_no_memory(reader);
  return 0;
}

static int read_wait(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  const struct workload_context *context = reader->context;
  char key[16];
  int id = 0;
  int result = fields_read_int(reader, place, value, field, &id);
  if (result < 0)
    return result;
  snprintf(key, sizeof key, "%d", id);
  const json_t *index = json_object_get(context->ids, key);
  if (!index)
    return fields_fail(reader, place, "%d, expected the id of a collective or exchange before it",
                       id);
  struct plan_item *wait = to, *item = &context->workload->events[json_integer_value(index)];
  bool is_everyones = wait->only.place == 0 || (wait->only.place == item->only.place &&
                                                wait->only.group == item->only.group);
  wait->number = item->number;
  for (; plan_is_communication(item) && item->number == wait->number; item++)
    item->is_waited |= is_everyones;
  return 0;
}

/* ---- collectives ---- */

static int read_split(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  static const struct field part = { .low = 0, .high = (double)WORKLOAD_ELEMENTS_MAX };
  struct plan_collective *collective = to;
  size_t length = json_array_size(value);
  int result = fields_want_list(reader, place, value, field);
  if (result < 0)
    return result;
  if (collective->split)
    return fields_fail(reader, place, "an alltoall has sends or receives, not both");
  struct plan_split *split = calloc(1, sizeof *split + length * sizeof split->counts[0]);
  if (!split)
    return workload_no_memory(reader);
  *split = (struct plan_split){ .is_received = !strcmp(place->key, "receives"),
                                .count = (unsigned)length };
  collective->split = split;
  collective->split_scale = 1;
  uint64_t sum = 0;
  for (size_t i = 0; i < length && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = fields_read_count(reader, &entry, json_array_get(value, i), &part, &split->counts[i]);
    sum += split->counts[i];
  }
  if (result == 0 && (sum < 1 || sum > WORKLOAD_ELEMENTS_MAX))
    result = fields_fail(reader, place, "%llu elements in all, expected 1 to %llu",
                         (unsigned long long)sum, (unsigned long long)WORKLOAD_ELEMENTS_MAX);
  return result;
}

static const struct field collective_fields[] = {
  { "collective", KIND_ONLY, KIND_ONLY, read_operation, ITEM(collective.operation), 0, 0 },
  { "elements", 0, KIND_ONLY, fields_read_count, ITEM(collective.elements), 1,
    (double)WORKLOAD_ELEMENTS_MAX },
  { "sends", 0, KIND_ONLY, read_split, ITEM(collective), 1, WORKLOAD_SPLIT_MAX },
  { "receives", 0, KIND_ONLY, read_split, ITEM(collective), 1, WORKLOAD_SPLIT_MAX },
  { "type", 0, KIND_ONLY, workload_read_type, ITEM(collective.type), 0, 0 },
  { "redop", 0, KIND_ONLY, read_redop, ITEM(collective.redop), 0, 0 },
  { "root", 0, KIND_ONLY, fields_read_int, ITEM(collective.root), 0, WORKLOAD_GROUP_RANKS_MAX - 1 },
  { "group", 0, KIND_ONLY, read_group, ITEM(collective.group), 0, 0 },
  ONLY_FIELD,
  { "id", 0, KIND_ONLY, read_id, 0, 1, INT32_MAX },
};

static int check_elements(struct fields_reader *reader, const struct place *place,
                          const struct plan_collective *collective) {
  const struct place elements = { place, "elements", 0 };
  const struct plan_split *split = collective->split;
  if (!split && !collective->elements)
    return fields_fail(reader, &elements, "missing");
  if (!split)
    return 0;
  const struct place name = { place, split->is_received ? "receives" : "sends", 0 };
  if (collective->operation != OPERATION_ALLTOALL)
    return fields_fail(reader, &name, "%s has elements, only alltoall may differ by rank",
                       operation_infos[collective->operation].name);
  if (collective->elements)
    return fields_fail(reader, &elements, "an alltoall has elements, sends or receives, not two");
  return 0;
}

/* The type that is not given is the file's. */
static int check_type(struct fields_reader *reader, const struct place *place,
                      const struct plan_item *item) {
  const struct place type = { place, "type", 0 };
  if (item->collective.type == ELEMENT_TYPES)
    return fields_fail(reader, &type, "missing, and there is no gradient_type");
  return 0;
}

/* What the collective does not say, and what it may not say. */
static int complete_collective(struct fields_reader *reader, const struct place *place,
                               const json_t *value, struct plan_item *item) {
  const struct operation_info *info = &operation_infos[item->collective.operation];
  const struct place redop = { place, "redop", 0 }, root = { place, "root", 0 };
  if (!info->has_redop && json_object_get(value, "redop"))
    return fields_fail(reader, &redop, "%s has no reduction", info->name);
  if (!info->has_root && json_object_get(value, "root"))
    return fields_fail(reader, &root, "%s has no root", info->name);
  int result = check_elements(reader, place, &item->collective);
  if (result == 0)
    result = check_type(reader, place, item);
  if (!info->has_redop)
    item->collective.redop = PATTERN_NONE;
  if (!info->has_root)
    item->collective.root = -1;
  const struct plan_split *split = item->collective.split;
  for (unsigned i = 0; split && i < split->count; i++)
    item->collective.elements += split->counts[i];
  return result;
}

/* ---- exchanges ---- */

enum { PART_SEND = 1, PART_RECV = 2, PART_ANY = PART_SEND | PART_RECV };

static const struct field part_fields[] = {
  { "send", PART_SEND, PART_SEND, fields_read_int, ITEM(collective.root), 0,
    WORKLOAD_GROUP_RANKS_MAX - 1 },
  { "recv", PART_RECV, PART_RECV, fields_read_int, ITEM(collective.root), 0,
    WORKLOAD_GROUP_RANKS_MAX - 1 },
  { "elements", PART_ANY, PART_ANY, fields_read_count, ITEM(collective.elements), 1,
    (double)WORKLOAD_ELEMENTS_MAX },
};

static const struct field exchange_fields[] = {
  { "exchange", KIND_ONLY, KIND_ONLY, NULL, 0, 0, 0 },
  { "type", 0, KIND_ONLY, workload_read_type, ITEM(collective.type), 0, 0 },
  { "group", 0, KIND_ONLY, read_group, ITEM(collective.group), 0, 0 },
  ONLY_FIELD,
  { "id", 0, KIND_ONLY, read_id, 0, 1, INT32_MAX },
};

/* Entries of an exchange; of another event 1. */
static size_t count_items(const json_t *event) {
  const json_t *parts = json_object_get(event, "exchange");
  return json_array_size(parts) ? json_array_size(parts) : 1;
}

/* `items` has room for all of them; the first has what they share. */
static int complete_exchange(struct fields_reader *reader, const struct place *place,
                             const json_t *value, struct plan_item *items) {
  const json_t *parts = json_object_get(value, "exchange");
  const struct place list = { place, "exchange", 0 };
  static const struct field entries = { .low = 1, .high = WORKLOAD_EXCHANGE_MAX };
  size_t count = json_array_size(parts);
  int result = check_type(reader, place, &items[0]);
  if (result == 0)
    result = fields_want_list(reader, &list, parts, &entries);
  if (result < 0)
    return result;
  items[0].collective.operation = OPERATION_SENDRECV;
  items[0].collective.redop = PATTERN_NONE;
  for (size_t i = count; i-- > 0;)
    items[i] = items[0];
  for (size_t i = 0; i < count && result == 0; i++) {
    const struct place entry = { &list, NULL, i };
    const json_t *part = json_array_get(parts, i);
    bool is_send = json_object_get(part, "send"), is_recv = json_object_get(part, "recv");
    result = fields_want(reader, &entry, part, JSON_OBJECT, "an object");
    if (result == 0 && !is_send && !is_recv)
      result = fields_fail(reader, &entry, "expected \"send\" or \"recv\" in it");
    items[i].kind = is_send ? PLAN_SEND : PLAN_RECV;
    if (result == 0)
      result = fields_read_object(reader, &entry, part, part_fields, COUNT_OF(part_fields),
                                  is_send ? PART_SEND : PART_RECV, is_send ? "a send" : "a receive",
                                  &items[i]);
  }
  return result;
}

/* ---- events ---- */

/* `only` first: what waits is compared with what is waited for. */
static const struct field compute_fields[] = {
  { "compute_us", KIND_ONLY, KIND_ONLY, fields_read_number, ITEM(us), 0, WORKLOAD_US_MAX },
  ONLY_FIELD,
};

static const struct field wait_fields[] = {
  ONLY_FIELD,
  { "wait", KIND_ONLY, KIND_ONLY, read_wait, 0, 1, INT32_MAX },
};

static const struct event_kind {
  const char *key; /* tells the kinds apart */
  enum plan_kind kind;
  const struct field *fields;
  size_t count;
  const char *text;
  int (*complete)(struct fields_reader *reader, const struct place *place, const json_t *value,
                  struct plan_item *items);
} event_kinds[] = {
  { "compute_us", PLAN_COMPUTE, compute_fields, COUNT_OF(compute_fields), "such an event", NULL },
  { "collective", PLAN_COLLECTIVE, collective_fields, COUNT_OF(collective_fields), "a collective",
    complete_collective },
  { "exchange", PLAN_SEND, exchange_fields, COUNT_OF(exchange_fields), "an exchange",
    complete_exchange },
  { "wait", PLAN_WAIT, wait_fields, COUNT_OF(wait_fields), "such an event", NULL },
};

static int read_event(struct fields_reader *reader, const struct place *place, const json_t *value,
                      struct plan_item *items) {
  struct workload_context *context = reader->context;
  int result = fields_want(reader, place, value, JSON_OBJECT, "an object");
  if (result < 0)
    return result;
  size_t i = 0;
  while (i < COUNT_OF(event_kinds) && !json_object_get(value, event_kinds[i].key))
    i++;
  if (i == COUNT_OF(event_kinds))
    return fields_fail(reader, place,
                       "expected \"compute_us\", \"collective\", \"exchange\" or \"wait\" in it");
  const struct event_kind *kind = &event_kinds[i];
  items[0].kind = kind->kind;
  items[0].event = (uint32_t)place->index;
  items[0].collective.type = context->workload->gradient_type;
  if (plan_is_communication(&items[0]))
    items[0].number = ++context->numbers;
  result = fields_read_object(reader, place, value, kind->fields, kind->count, KIND_ONLY,
                              kind->text, &items[0]);
  return result == 0 && kind->complete ? kind->complete(reader, place, value, items) : result;
}

int workload_read_events(struct fields_reader *reader, const struct place *place,
                         const json_t *value, const struct field *field, void *to) {
  struct workload *workload = to;
  int result = fields_want(reader, place, value, JSON_ARRAY, "a list");
  if (result < 0)
    return result;
  size_t events = json_array_size(value), items = 0;
  for (size_t i = 0; i < events; i++)
    items += count_items(json_array_get(value, i));
  if (events < (size_t)field->low || items > (size_t)field->high)
    return fields_fail(reader, place, "%zu entries, expected %.0f to %.0f", items, field->low,
                       field->high);
  workload->events = calloc(items + 1, sizeof *workload->events);
  if (!workload->events)
    return workload_no_memory(reader);
  workload->event_count = items;
  struct plan_item *item = workload->events;
  for (size_t i = 0; i < events && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = read_event(reader, &entry, json_array_get(value, i), item);
    item += count_items(json_array_get(value, i));
  }
  return result;
}
