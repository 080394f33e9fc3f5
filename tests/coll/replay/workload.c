/* SPDX-License-Identifier: Apache-2.0 */
/* workload: one table for each kind of object in the file. */
#include "tests/coll/replay/workload.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/coll/replay/workload_parts.h"

const char *const workload_parallel_names[WORKLOAD_PARALLELS] = {
  [WORKLOAD_DDP] = "ddp",       [WORKLOAD_FSDP] = "fsdp",     [WORKLOAD_ZERO2] = "zero2",
  [WORKLOAD_TENSOR] = "tensor", [WORKLOAD_EVENTS] = "events",
};

/* PyTorch's defaults: kDefaultFirstBucketBytes of torch/csrc/distributed/c10d/reducer.hpp, and
 * bucket_cap_mb=25 of DistributedDataParallel. */
static const uint64_t default_first_bucket_bytes = 1 << 20, default_bucket_bytes = 25 << 20;

/* DeepSpeed's reduce_bucket_size and allgather_bucket_size (deepspeed/runtime/zero/config.py). */
static const uint64_t zero2_bucket_elements = 500000000;

enum { TEXT_MAX = 4096 };

/* Kinds of the object at the top. */
enum {
  KIND_DDP = 1 << WORKLOAD_DDP,
  KIND_EVENTS = 1 << WORKLOAD_EVENTS,
  KIND_BUCKETS = KIND_DDP | 1 << WORKLOAD_ZERO2,
  KIND_LAYERS = KIND_BUCKETS | 1 << WORKLOAD_FSDP | 1 << WORKLOAD_TENSOR,
  KIND_ALL = KIND_LAYERS | KIND_EVENTS,
};

int workload_no_memory(struct fields_reader *reader) {
  fields_fail(reader, NULL, "out of memory");
  return -ENOMEM;
}

/* PyTorch's names, in NCCL's order, and NCCL's as coll has them. */
int workload_read_type(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  (void)field;
  return fields_read_word(reader, place, value,
                          "int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, "
                          "bfloat16, f8e4m3 or f8e5m2",
                          element_find, to);
}

/* ---- lists ---- */

int workload_open_list(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, size_t entry_bytes, void **entries,
                       size_t *count) {
  int result = fields_want_list(reader, place, value, field);
  if (result < 0)
    return result;
  *entries = calloc(json_array_size(value) + 1, entry_bytes);
  if (!*entries)
    return workload_no_memory(reader);
  *count = json_array_size(value);
  return 0;
}

static int read_parameters(struct fields_reader *reader, const struct place *place,
                           const json_t *value, const struct field *field, void *to) {
  static const struct field parameter = { .low = 1, .high = (double)WORKLOAD_ELEMENTS_MAX };
  struct workload_layer *layer = to;
  void *entries;
  int result = workload_open_list(reader, place, value, field, sizeof *layer->parameters, &entries,
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

static int read_layers(struct fields_reader *reader, const struct place *place, const json_t *value,
                       const struct field *field, void *to) {
  struct workload *workload = to;
  void *entries;
  int result = workload_open_list(reader, place, value, field, sizeof *workload->layers, &entries,
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

/* ---- the file ---- */

#define TOP(member) offsetof(struct workload, member)

static const struct field top_fields[] = {
  { "format", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "version", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "name", KIND_ALL, KIND_ALL, fields_read_name, TOP(name), 1, WORKLOAD_NAME_BYTES_MAX },
  { "source", KIND_ALL, KIND_ALL, fields_read_text, TOP(source), 1, TEXT_MAX },
  { "batch", KIND_ALL, KIND_ALL, fields_read_int, TOP(batch), 1, 1000000 },
  { "parallel", KIND_ALL, KIND_ALL, NULL, 0, 0, 0 },
  { "gradient_type", KIND_LAYERS, KIND_ALL, workload_read_type, TOP(gradient_type), 0, 0 },
  { "first_bucket_bytes", 0, KIND_DDP, fields_read_count, TOP(first_bucket_bytes), 1,
    (double)WORKLOAD_BUCKET_BYTES_MAX },
  { "bucket_bytes", 0, KIND_BUCKETS, fields_read_count, TOP(bucket_bytes), 1,
    (double)WORKLOAD_BUCKET_BYTES_MAX },
  { "optimizer_us", 0, KIND_ALL, fields_read_number, TOP(optimizer_us), 0, WORKLOAD_US_MAX },
  { "layers", KIND_LAYERS, KIND_LAYERS, read_layers, 0, 1, WORKLOAD_LAYERS_MAX },
  { "groups", 0, KIND_EVENTS, workload_read_groups, 0, 0, WORKLOAD_GROUPS_MAX },
  { "events", KIND_EVENTS, KIND_EVENTS, workload_read_events, 0, 1, WORKLOAD_EVENTS_MAX },
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
  return value ? fields_read_word(reader, &parallel_place, value,
                                  "ddp, fsdp, zero2, tensor or events", NULL,
                                  &reader->context->workload->parallel)
               : fields_fail(reader, &parallel_place, "missing");
}

static int read_top(struct fields_reader *reader, const json_t *top) {
  struct workload *workload = reader->context->workload;
  int result = read_head(reader, top);
  if (result < 0)
    return result;
  if (workload->parallel == WORKLOAD_ZERO2)
    workload->bucket_bytes = 0;
  char kind_text[64];
  snprintf(kind_text, sizeof kind_text, "\"parallel\": \"%s\"",
           workload_parallel_names[workload->parallel]);
  result = fields_read_object(reader, NULL, top, top_fields, COUNT_OF(top_fields),
                              1U << workload->parallel, kind_text, workload);
  if (result == 0 && !workload->bucket_bytes)
    workload->bucket_bytes =
        zero2_bucket_elements * element_infos[workload->gradient_type].size_bytes;
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
  struct workload_context context = { .workload = workload, .ids = json_object() };
  struct fields_reader reader = { name, error, WORKLOAD_ERROR_MAX, &context };
  int result = !context.ids ? workload_no_memory(&reader)
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
  for (size_t i = 0; i < workload->event_count; i++)
    free((void *)workload->events[i].collective.split);
  free(workload->events);
  free(workload->name);
  free(workload->source);
  *workload = (struct workload){ 0 };
}

/* ---- where it is ---- */

static const char suffix[] = ".json";

static bool ends_in_suffix(const char *text) {
  size_t length = strlen(text);
  return length > strlen(suffix) && !strcmp(text + length - strlen(suffix), suffix);
}

/* The directory of the built-in workloads, from a program in the source tree, in build/tests or
 * below, or in that of a build directory with sanitizers; false if there is none. */
static bool find_directory(char directory[PATH_MAX]) {
  static const char *const places[] = { "../../../../tuner_plugin/workloads",
                                        "../../tuner_plugin/workloads",
                                        "../../../tuner_plugin/workloads" };
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(program, '/');
  for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
    int used = snprintf(directory, PATH_MAX, "%.*s/%s", (int)(slash - program), program, places[i]);
    if (used < PATH_MAX && access(directory, R_OK | X_OK) == 0)
      return true;
  }
  return false;
}

static int is_workload(const struct dirent *entry) {
  return ends_in_suffix(entry->d_name);
}

/* "alexnet, resnet18" */
static void list_names(const char *directory, char *text, size_t size) {
  struct dirent **entries;
  int count = scandir(directory, &entries, is_workload, alphasort);
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    if (used < size)
      used +=
          (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                           (int)(strlen(entries[i]->d_name) - strlen(suffix)), entries[i]->d_name);
    free(entries[i]);
  }
  if (count >= 0)
    free(entries);
}

int workload_find(const char *argument, char path[PATH_MAX], char *error) {
  char directory[PATH_MAX], names[WORKLOAD_ERROR_MAX / 2] = "";
  if (strchr(argument, '/') || ends_in_suffix(argument)) {
    snprintf(path, PATH_MAX, "%s", argument);
    return 0;
  }
  bool is_there = find_directory(directory);
  if (is_there) {
    int used = snprintf(path, PATH_MAX, "%s/%s%s", directory, argument, suffix);
    if (used < PATH_MAX && access(path, R_OK) == 0)
      return 0;
    list_names(directory, names, sizeof names);
  }
  snprintf(
      error, WORKLOAD_ERROR_MAX,
      "no workload %.64s; built in: %s; a file of your own is given with a slash or with .json "
      "at the end",
      argument, *names ? names : "none, as share/stratus/workloads is missing");
  return -ENOENT;
}
