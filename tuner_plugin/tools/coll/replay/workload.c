/* SPDX-License-Identifier: Apache-2.0 */
/* workload: one table for each kind of object in the file. */
#include "tuner_plugin/tools/coll/replay/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tuner_plugin/tools/coll/replay/fields.h"

const char *const workload_parallel_names[WORKLOAD_PARALLELS] = {
  [WORKLOAD_DDP] = "ddp",
  [WORKLOAD_FSDP] = "fsdp",
  [WORKLOAD_TENSOR] = "tensor",
  [WORKLOAD_EVENTS] = "events",
};

/* PyTorch's defaults: kDefaultFirstBucketBytes of torch/csrc/distributed/c10d/reducer.hpp, and
 * bucket_cap_mb=25 of DistributedDataParallel. */
static const uint64_t default_first_bucket_bytes = 1 << 20, default_bucket_bytes = 25 << 20;

enum { TEXT_MAX = 4096, NAME_MAX_BYTES = 64 };

/* Kinds of the object at the top. */
enum {
  KIND_DDP = 1 << WORKLOAD_DDP,
  KIND_EVENTS = 1 << WORKLOAD_EVENTS,
  KIND_LAYERS = KIND_DDP | 1 << WORKLOAD_FSDP | 1 << WORKLOAD_TENSOR,
  KIND_ALL = KIND_LAYERS | KIND_EVENTS,
};
enum { KIND_ONLY = 1 }; /* of the others, where there is one kind */

/* What is known while a file is read. */
struct context {
  struct workload *workload;
  json_t *ids; /* of the collectives: id as text -> number */
  uint32_t collectives;
};

static struct context *context_of(const struct fields_reader *reader) {
  return reader->context;
}

static int no_memory(struct fields_reader *reader) {
  fields_fail(reader, NULL, "out of memory");
  return -ENOMEM;
}

/* ---- words ---- */

/* The place of a word in the table, or a message that lists them. */
static int find_word(struct fields_reader *reader, const struct place *place, const json_t *value,
                     int (*find)(const char *word), const char *words, int *found) {
  int result = fields_want(reader, place, value, JSON_STRING, words);
  if (result < 0)
    return result;
  *found = find(json_string_value(value));
  if (*found < 0)
    return fields_fail(reader, place, "\"%.64s\", expected %s", json_string_value(value), words);
  return 0;
}

static int find_parallel(const char *word) {
  int i = 0;
  while (i < WORKLOAD_PARALLELS && strcmp(workload_parallel_names[i], word))
    i++;
  return i < WORKLOAD_PARALLELS ? i : -1;
}

/* NCCL's names as stratus-coll has them, and those of PyTorch where they differ. */
static int find_type(const char *word) {
  static const struct {
    const char *name;
    enum element_type type;
  } others[] = { { "float16", ELEMENT_HALF },
                 { "float32", ELEMENT_FLOAT },
                 { "float64", ELEMENT_DOUBLE } };
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (!strcmp(others[i].name, word))
      return (int)others[i].type;
  }
  return element_find(word);
}

static int read_type(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  int found;
  int result = find_word(reader, place, value, find_type,
                         "int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, "
                         "bfloat16, f8e4m3 or f8e5m2",
                         &found);
  (void)field;
  if (result == 0)
    *(enum element_type *)to = (enum element_type)found;
  return result;
}

static int read_operation(struct fields_reader *reader, const struct place *place,
                          const json_t *value, const struct field *field, void *to) {
  int found;
  int result = find_word(reader, place, value, operation_find,
                         "all_reduce, all_gather, reduce_scatter, broadcast, reduce, sendrecv or "
                         "alltoall",
                         &found);
  (void)field;
  if (result == 0)
    *(enum operation *)to = (enum operation)found;
  return result;
}

static int read_redop(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  int found;
  int result = find_word(reader, place, value, operation_redop_find,
                         "sum, prod, max, min, avg or mulsum", &found);
  (void)field;
  if (result == 0)
    *(enum pattern_redop *)to = (enum pattern_redop)found;
  return result;
}

static int read_group(struct fields_reader *reader, const struct place *place, const json_t *value,
                      const struct field *field, void *to) {
  const struct workload *workload = context_of(reader)->workload;
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

/* ---- lists ---- */

/* Allocates room for a list's entries, and counts them. */
static int open_list(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, size_t entry_bytes, void **entries, size_t *count) {
  int result = fields_want(reader, place, value, JSON_ARRAY, "a list");
  if (result < 0)
    return result;
  size_t length = json_array_size(value);
  if (length < (size_t)field->low || length > (size_t)field->high)
    return fields_fail(reader, place, "%zu entries, expected %.0f to %.0f", length, field->low,
                       field->high);
  *entries = calloc(length + 1, entry_bytes);
  if (!*entries)
    return no_memory(reader);
  *count = length;
  return 0;
}

static int read_parameters(struct fields_reader *reader, const struct place *place,
                           const json_t *value, const struct field *field, void *to) {
  static const struct field parameter = { .low = 1, .high = (double)WORKLOAD_ELEMENTS_MAX };
  struct workload_layer *layer = to;
  void *entries;
  int result = open_list(reader, place, value, field, sizeof *layer->parameters, &entries,
                         &layer->parameter_count);
  if (result < 0)
    return result;
  layer->parameters = entries;
  for (size_t i = 0; i < layer->parameter_count && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = fields_read_count(reader, &entry, json_array_get(value, i), &parameter,
                               &layer->parameters[i]);
  }
  return result;
}

static const struct field layer_fields[] = {
  { "name", KIND_ONLY, KIND_ONLY, fields_read_text, offsetof(struct workload_layer, name), 1,
    TEXT_MAX },
  { "parameters", KIND_ONLY, KIND_ONLY, read_parameters, 0, 0, WORKLOAD_PARAMETERS_MAX },
  { "forward_us", KIND_ONLY, KIND_ONLY, fields_read_number,
    offsetof(struct workload_layer, forward_us), 0, WORKLOAD_US_MAX },
  { "backward_us", KIND_ONLY, KIND_ONLY, fields_read_number,
    offsetof(struct workload_layer, backward_us), 0, WORKLOAD_US_MAX },
  { "activations", 0, KIND_ONLY, fields_read_count, offsetof(struct workload_layer, activations), 1,
    (double)WORKLOAD_ELEMENTS_MAX },
};

static const struct field group_fields[] = {
  { "name", KIND_ONLY, KIND_ONLY, fields_read_name, offsetof(struct workload_group, name), 1,
    NAME_MAX_BYTES },
  { "size", KIND_ONLY, KIND_ONLY, fields_read_int, offsetof(struct workload_group, size), 1,
    WORKLOAD_GROUP_RANKS_MAX },
  { "stride", KIND_ONLY, KIND_ONLY, fields_read_int, offsetof(struct workload_group, stride), 1,
    WORKLOAD_GROUP_RANKS_MAX },
};
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static int read_layers(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  struct workload *workload = to;
  void *entries;
  int result = open_list(reader, place, value, field, sizeof *workload->layers, &entries,
                         &workload->layer_count);
  if (result < 0)
    return result;
  workload->layers = entries;
  for (size_t i = 0; i < workload->layer_count && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = fields_read_object(reader, &entry, json_array_get(value, i), layer_fields,
                                COUNT_OF(layer_fields), KIND_ONLY, "a layer", &workload->layers[i]);
  }
  return result;
}

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

static int read_groups(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  struct workload *workload = to;
  void *entries;
  int result = open_list(reader, place, value, field, sizeof *workload->groups, &entries,
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

/* ---- events ---- */

/* A collective gets the next number, by which others know it; its id, if it has one, is kept. */
static int read_id(struct fields_reader *reader, const struct place *place, const json_t *value,
                   const struct field *field, void *to) {
  struct context *context = context_of(reader);
  char key[16];
  int id = 0;
  int result = fields_read_int(reader, place, value, field, &id);
  if (result < 0)
    return result;
  snprintf(key, sizeof key, "%d", id);
  if (json_object_get(context->ids, key))
    return fields_fail(reader, place, "%d is also the id of another collective", id);
  (void)to;
  if (json_object_set_new(context->ids, key, json_integer(context->collectives + 1)))
    return no_memory(reader);
  return 0;
}

static int read_wait(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field, void *to) {
  char key[16];
  int id = 0;
  int result = fields_read_int(reader, place, value, field, &id);
  if (result < 0)
    return result;
  snprintf(key, sizeof key, "%d", id);
  const json_t *number = json_object_get(context_of(reader)->ids, key);
  if (!number)
    return fields_fail(reader, place, "%d, expected the id of a collective before it", id);
  *(uint32_t *)to = (uint32_t)json_integer_value(number);
  return 0;
}

#define ITEM(member) offsetof(struct plan_item, member)

static const struct field compute_fields[] = {
  { "compute_us", KIND_ONLY, KIND_ONLY, fields_read_number, ITEM(us), 0, WORKLOAD_US_MAX },
};

static const struct field collective_fields[] = {
  { "collective", KIND_ONLY, KIND_ONLY, read_operation, ITEM(collective.operation), 0, 0 },
  { "elements", KIND_ONLY, KIND_ONLY, fields_read_count, ITEM(collective.elements), 1,
    (double)WORKLOAD_ELEMENTS_MAX },
  { "type", 0, KIND_ONLY, read_type, ITEM(collective.type), 0, 0 },
  { "redop", 0, KIND_ONLY, read_redop, ITEM(collective.redop), 0, 0 },
  { "root", 0, KIND_ONLY, fields_read_int, ITEM(collective.root), 0, WORKLOAD_GROUP_RANKS_MAX - 1 },
  { "group", 0, KIND_ONLY, read_group, ITEM(collective.group), 0, 0 },
  { "id", 0, KIND_ONLY, read_id, 0, 1, INT32_MAX },
};

static const struct field wait_fields[] = {
  { "wait", KIND_ONLY, KIND_ONLY, read_wait, ITEM(number), 1, INT32_MAX },
};

static const struct event_kind {
  const struct field *fields; /* the first key tells the kinds apart */
  size_t count;
  const char *text;
} event_kinds[] = {
  [PLAN_COMPUTE] = { compute_fields, COUNT_OF(compute_fields), "such an event" },
  [PLAN_COLLECTIVE] = { collective_fields, COUNT_OF(collective_fields), "a collective" },
  [PLAN_WAIT] = { wait_fields, COUNT_OF(wait_fields), "such an event" },
};

/* What the collective does not say, and what it may not say. */
static int complete_collective(struct fields_reader *reader, const struct place *place,
                               const json_t *value, struct plan_item *event) {
  const struct operation_info *info = &operation_infos[event->collective.operation];
  const struct place redop = { place, "redop", 0 }, root = { place, "root", 0 };
  const struct place type = { place, "type", 0 };
  if (!info->has_redop && json_object_get(value, "redop"))
    return fields_fail(reader, &redop, "%s has no reduction", info->name);
  if (!info->has_root && json_object_get(value, "root"))
    return fields_fail(reader, &root, "%s has no root", info->name);
  if (event->collective.type == ELEMENT_TYPES)
    return fields_fail(reader, &type, "missing, and there is no gradient_type");
  if (!info->has_redop)
    event->collective.redop = PATTERN_NONE;
  if (!info->has_root)
    event->collective.root = -1;
  event->number = ++context_of(reader)->collectives;
  return 0;
}

static int read_event(struct fields_reader *reader, const struct place *place, const json_t *value,
                      struct plan_item *event) {
  int result = fields_want(reader, place, value, JSON_OBJECT, "an object");
  if (result < 0)
    return result;
  size_t kind = 0;
  while (kind < COUNT_OF(event_kinds) && !json_object_get(value, event_kinds[kind].fields[0].key))
    kind++;
  if (kind == COUNT_OF(event_kinds))
    return fields_fail(reader, place, "expected \"compute_us\", \"collective\" or \"wait\" in it");
  event->kind = (enum plan_kind)kind;
  event->collective.type = context_of(reader)->workload->gradient_type;
  result = fields_read_object(reader, place, value, event_kinds[kind].fields,
                              event_kinds[kind].count, KIND_ONLY, event_kinds[kind].text, event);
  if (result == 0 && kind == PLAN_COLLECTIVE)
    result = complete_collective(reader, place, value, event);
  return result;
}

static int read_events(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  struct workload *workload = to;
  void *entries;
  int result = open_list(reader, place, value, field, sizeof *workload->events, &entries,
                         &workload->event_count);
  if (result < 0)
    return result;
  workload->events = entries;
  for (size_t i = 0; i < workload->event_count && result == 0; i++) {
    const struct place entry = { place, NULL, i };
    result = read_event(reader, &entry, json_array_get(value, i), &workload->events[i]);
  }
  return result;
}

/* ---- the file ---- */

#define TOP(member) offsetof(struct workload, member)

static const struct field top_fields[] = {
  { "format", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "version", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "name", KIND_ALL, KIND_ALL, fields_read_name, TOP(name), 1, NAME_MAX_BYTES },
  { "source", KIND_ALL, KIND_ALL, fields_read_text, TOP(source), 1, TEXT_MAX },
  { "batch", KIND_ALL, KIND_ALL, fields_read_int, TOP(batch), 1, 1000000 },
  { "parallel", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "gradient_type", KIND_LAYERS, KIND_ALL, read_type, TOP(gradient_type), 0, 0 },
  { "first_bucket_bytes", 0, KIND_DDP, fields_read_count, TOP(first_bucket_bytes), 1,
    (double)WORKLOAD_BUCKET_BYTES_MAX },
  { "bucket_bytes", 0, KIND_DDP, fields_read_count, TOP(bucket_bytes), 1,
    (double)WORKLOAD_BUCKET_BYTES_MAX },
  { "optimizer_us", 0, KIND_ALL, fields_read_number, TOP(optimizer_us), 0, WORKLOAD_US_MAX },
  { "layers", KIND_LAYERS, KIND_LAYERS, read_layers, 0, 1, WORKLOAD_LAYERS_MAX },
  { "groups", 0, KIND_EVENTS, read_groups, 0, 0, WORKLOAD_GROUPS_MAX },
  { "events", KIND_EVENTS, KIND_EVENTS, read_events, 0, 1, WORKLOAD_EVENTS_MAX },
};

/* Tensor parallelism without a layer that says so is a mistake. */
static int check_activations(struct fields_reader *reader, const struct workload *workload) {
  static const struct place layers = { NULL, "layers", 0 };
  for (size_t i = 0; i < workload->layer_count; i++) {
    if (workload->layers[i].activations)
      return 0;
  }
  return fields_fail(reader, &layers,
                     "no layer has activations, which \"parallel\": \"tensor\" exchanges");
}

/* Says what the file is before anything else is looked at. */
static int read_head(struct fields_reader *reader, const json_t *top) {
  static const struct field version = { .low = 1, .high = 1 };
  const struct place format_place = { NULL, "format", 0 }, version_place = { NULL, "version", 0 };
  const struct place parallel_place = { NULL, "parallel", 0 };
  int found = 0;
  int result = fields_want(reader, NULL, top, JSON_OBJECT, "an object");
  if (result < 0)
    return result;
  const char *format = json_string_value(json_object_get(top, "format"));
  if (!format || strcmp(format, "stratus-workload") != 0)
    return fields_fail(reader, &format_place, "expected \"stratus-workload\": not a workload file");
  const json_t *value = json_object_get(top, "version");
  result = value ? fields_read_int(reader, &version_place, value, &version, &found)
                 : fields_fail(reader, &version_place, "missing");
  if (result < 0)
    return result;
  value = json_object_get(top, "parallel");
  result = value ? find_word(reader, &parallel_place, value, find_parallel,
                             "ddp, fsdp, tensor or events", &found)
                 : fields_fail(reader, &parallel_place, "missing");
  context_of(reader)->workload->parallel = (enum workload_parallel)found;
  return result;
}

static int read_top(struct fields_reader *reader, const json_t *top) {
  struct workload *workload = context_of(reader)->workload;
  int result = read_head(reader, top);
  if (result < 0)
    return result;
  char kind_text[64];
  snprintf(kind_text, sizeof kind_text, "\"parallel\": \"%s\"",
           workload_parallel_names[workload->parallel]);
  result = fields_read_object(reader, NULL, top, top_fields, COUNT_OF(top_fields),
                              1U << workload->parallel, kind_text, workload);
  if (result == 0 && workload->parallel == WORKLOAD_TENSOR)
    result = check_activations(reader, workload);
  return result;
}

/* Frees `top`, which is NULL if the text is no JSON. */
static int read_json(struct workload *workload, json_t *top, const json_error_t *problem,
                     const char *name, char *error) {
  *workload = (struct workload){ .first_bucket_bytes = default_first_bucket_bytes,
                                 .bucket_bytes = default_bucket_bytes,
                                 .gradient_type = ELEMENT_TYPES };
  struct context context = { .workload = workload, .ids = json_object() };
  struct fields_reader reader = { name, error, WORKLOAD_ERROR_MAX, &context };
  int result = !context.ids ? no_memory(&reader)
               : top        ? read_top(&reader, top)
                            : fields_fail(&reader, NULL, "line %d, column %d: %s", problem->line,
                                          problem->column, problem->text);
  json_decref(top);
  json_decref(context.ids);
  if (result < 0)
    workload_free(workload);
  return result;
}

int workload_parse(struct workload *workload, const char *text, size_t length, const char *name,
                   char *error) {
  json_error_t problem;
  json_t *top = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
  return read_json(workload, top, &problem, name, error);
}

int workload_read(struct workload *workload, const char *path, char *error) {
  json_error_t problem;
  struct stat facts;
  int failure = stat(path, &facts) < 0 || access(path, R_OK) < 0 ? errno
                : S_ISDIR(facts.st_mode)                         ? EISDIR
                                                                 : 0;
  if (failure) {
    *workload = (struct workload){ 0 };
    snprintf(error, WORKLOAD_ERROR_MAX, "%.300s: %s", path, strerror(failure));
    return -failure;
  }
  json_t *top = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
  return read_json(workload, top, &problem, path, error);
}

void workload_free(struct workload *workload) {
  for (size_t i = 0; i < workload->layer_count; i++) {
    free(workload->layers[i].name);
    free(workload->layers[i].parameters);
  }
  for (size_t i = 0; i < workload->group_count; i++)
    free(workload->groups[i].name);
  free(workload->layers);
  free(workload->groups);
  free(workload->events);
  free(workload->name);
  free(workload->source);
  *workload = (struct workload){ 0 };
}
