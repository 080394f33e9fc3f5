/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of workload files: what it takes, and that each mistake is named with its place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/unit.h"
#include "tests/coll/replay/workload.h"

static struct workload workload;
static char error[WORKLOAD_ERROR_MAX];

static int parse(const char *text) {
  error[0] = '\0';
  return workload_parse(&workload, text, strlen(text), "w.json", error);
}

static const char layers_text[] =
    "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"two\", \"source\": \"a test\","
    " \"batch\": 32, \"parallel\": \"ddp\", \"gradient_type\": \"float32\","
    " \"first_bucket_bytes\": 1000, \"bucket_bytes\": 5000, \"optimizer_us\": 12.5,"
    " \"layers\": ["
    "  {\"name\": \"conv1\", \"parameters\": [9408, 64], \"forward_us\": 812.5,"
    "   \"backward_us\": 1625, \"activations\": 802816},"
    "  {\"name\": \"relu\", \"parameters\": [], \"forward_us\": 0, \"backward_us\": 1e2}]}";

static const char events_text[] =
    "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"e-1\", \"source\": \"a test\","
    " \"batch\": 1, \"parallel\": \"events\","
    " \"groups\": [{\"name\": \"tp\", \"size\": 2, \"stride\": 4}],"
    " \"events\": [{\"compute_us\": 120.5},"
    "  {\"collective\": \"all_reduce\", \"elements\": 1048576, \"type\": \"float16\","
    "   \"redop\": \"max\", \"group\": \"tp\", \"id\": 9},"
    "  {\"collective\": \"broadcast\", \"elements\": 7, \"type\": \"uint8\", \"root\": 3, \"id\": "
    "4},"
    "  {\"collective\": \"all_gather\", \"elements\": 1, \"type\": \"int64\"},"
    "  {\"wait\": 4}]}";

UNIT_TEST(test_layers) {
  assert_int_equal(parse(layers_text), 0);
  assert_string_equal(workload.name, "two");
  assert_string_equal(workload.source, "a test");
  assert_int_equal(workload.batch, 32);
  assert_int_equal(workload.parallel, WORKLOAD_DDP);
  assert_int_equal(workload.gradient_type, ELEMENT_FLOAT);
  assert_int_equal(workload.first_bucket_bytes, 1000);
  assert_int_equal(workload.bucket_bytes, 5000);
  assert_true(workload.optimizer_us == 12.5);
  assert_int_equal(workload.layer_count, 2);
  const struct workload_layer *layer = &workload.layers[0];
  assert_string_equal(layer->name, "conv1");
  assert_int_equal(layer->parameter_count, 2);
  assert_int_equal(layer->parameters[0], 9408);
  assert_int_equal(layer->parameters[1], 64);
  assert_true(layer->forward_us == 812.5 && layer->backward_us == 1625);
  assert_int_equal(layer->activations, 802816);
  assert_int_equal(workload.layers[1].parameter_count, 0);
  assert_int_equal(workload.layers[1].activations, 0);
  assert_true(workload.layers[1].backward_us == 100);
  workload_free(&workload);
  assert_null(workload.layers);
}

UNIT_TEST(test_events) {
  assert_int_equal(parse(events_text), 0);
  assert_int_equal(workload.parallel, WORKLOAD_EVENTS);
  assert_int_equal(workload.group_count, 1);
  assert_string_equal(workload.groups[0].name, "tp");
  assert_int_equal(workload.groups[0].size, 2);
  assert_int_equal(workload.groups[0].stride, 4);
  assert_int_equal(workload.event_count, 5);
  const struct plan_item *events = workload.events;
  assert_int_equal(events[0].kind, PLAN_COMPUTE);
  assert_true(events[0].us == 120.5);
  assert_int_equal(events[1].kind, PLAN_COLLECTIVE);
  assert_int_equal(events[1].number, 1);
  assert_int_equal(events[1].collective.operation, OPERATION_ALL_REDUCE);
  assert_int_equal(events[1].collective.elements, 1048576);
  assert_int_equal(events[1].collective.type, ELEMENT_HALF);
  assert_int_equal(events[1].collective.redop, PATTERN_MAX);
  assert_int_equal(events[1].collective.root, -1);
  assert_int_equal(events[1].collective.group, 1);
  assert_int_equal(events[2].collective.redop, PATTERN_NONE);
  assert_int_equal(events[2].collective.root, 3);
  assert_int_equal(events[2].collective.group, PLAN_WORLD);
  assert_int_equal(events[3].number, 3);
  assert_int_equal(events[4].kind, PLAN_WAIT);
  assert_int_equal(events[4].number, 2); /* the second collective has the id 4 */
  workload_free(&workload);
}

/* `text` with its first `old` replaced by `new`; in a buffer of this function's. */
static const char *with(const char *text, const char *old, const char *new) {
  static char changed[4096];
  const char *at = strstr(text, old);
  if (!at)
    fail_msg("the text has no %s", old);
  snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
  return changed;
}

UNIT_TEST(test_defaults) {
  assert_int_equal(parse(with(layers_text,
                              "\"first_bucket_bytes\": 1000, \"bucket_bytes\": 5000, "
                              "\"optimizer_us\": 12.5,",
                              "")),
                   0);
  assert_int_equal(workload.first_bucket_bytes, 1048576);
  assert_int_equal(workload.bucket_bytes, 26214400);
  assert_true(workload.optimizer_us == 0);
  workload_free(&workload);
  /* The type of the gradients is that of collectives which name none. */
  assert_int_equal(parse(with(events_text, "\"parallel\": \"events\"",
                              "\"parallel\": \"events\", \"gradient_type\": \"bfloat16\"")),
                   0);
  assert_int_equal(workload.events[1].collective.type, ELEMENT_HALF);
  workload_free(&workload);
  assert_int_equal(
      parse("{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"e\", \"source\": \"t\","
            " \"batch\": 1, \"parallel\": \"events\", \"gradient_type\": \"bfloat16\","
            " \"events\": [{\"collective\": \"reduce\", \"elements\": 1}]}"),
      0);
  assert_int_equal(workload.events[0].collective.type, ELEMENT_BFLOAT16);
  assert_int_equal(workload.events[0].collective.redop, PATTERN_SUM);
  assert_int_equal(workload.events[0].collective.root, 0);
  workload_free(&workload);
}

/* NCCL's names, as coll has them, and PyTorch's. */
UNIT_TEST(test_type_names) {
  static const struct {
    const char *name;
    enum element_type type;
  } names[] = { { "float", ELEMENT_FLOAT },      { "float32", ELEMENT_FLOAT },
                { "half", ELEMENT_HALF },        { "float16", ELEMENT_HALF },
                { "double", ELEMENT_DOUBLE },    { "float64", ELEMENT_DOUBLE },
                { "int8", ELEMENT_INT8 },        { "f8e5m2", ELEMENT_F8E5M2 },
                { "bfloat16", ELEMENT_BFLOAT16 } };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"", names[i].name);
    assert_int_equal(parse(with(layers_text, "\"float32\"", quoted)), 0);
    assert_int_equal(workload.gradient_type, names[i].type);
    workload_free(&workload);
  }
}

struct mistake {
  const char *old, *new; /* in the good text */
  const char *message;   /* all of it */
};

static void check_mistakes(const char *text, const struct mistake *mistakes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const struct mistake *m = &mistakes[i];
    assert_int_equal(parse(with(text, m->old, m->new)), -EINVAL);
    if (strcmp(error, m->message) != 0)
      fail_msg("%s: says \"%s\", not \"%s\"", m->new, error, m->message);
    assert_null(workload.name);
  }
}

UNIT_TEST(test_mistakes_at_the_top) {
  static const struct mistake mistakes[] = {
    { "\"stratus-workload\"", "\"chakra\"",
      "w.json: format: expected \"stratus-workload\": not a workload file" },
    { "\"format\": \"stratus-workload\",", "",
      "w.json: format: expected \"stratus-workload\": not a workload file" },
    { "\"version\": 1", "\"version\": 2", "w.json: version: 2, expected 1" },
    { "\"version\": 1", "\"version\": \"1\"",
      "w.json: version: a text, expected a whole number, 1" },
    { "\"version\": 1,", "", "w.json: version: missing" },
    { "\"ddp\"", "\"dpp\"",
      "w.json: parallel: \"dpp\", expected ddp, fsdp, zero2, tensor or events" },
    { "\"ddp\"", "3", "w.json: parallel: a number, expected ddp, fsdp, zero2, tensor or events" },
    { "\"parallel\": \"ddp\",", "", "w.json: parallel: missing" },
    { "\"batch\": 32", "\"batch\": 0", "w.json: batch: 0, expected 1 to 1000000" },
    { "\"batch\": 32", "\"batch\": 32.0",
      "w.json: batch: a fraction, expected a whole number, 1 to 1000000" },
    { "\"batch\": 32,", "", "w.json: batch: missing" },
    { "\"two\"", "\"two models\"",
      "w.json: name: \"two models\", expected letters, digits and . _ + - only" },
    { "\"two\"", "\"\"", "w.json: name: 0 characters long, expected 1 to 64" },
    { "\"two\"", "null", "w.json: name: null, expected a text" },
    { "\"a test\"", "[]", "w.json: source: a list, expected a text" },
    { "\"float32\"", "\"fp32\"",
      "w.json: gradient_type: \"fp32\", expected int8, uint8, int32, uint32, int64, uint64, "
      "float16, "
      "float32, float64, bfloat16, f8e4m3 or f8e5m2" },
    { "\"gradient_type\": \"float32\",", "", "w.json: gradient_type: missing" },
    { "5000", "0", "w.json: bucket_bytes: 0, expected 1 to 1099511627776" },
    { "1000,", "-1,", "w.json: first_bucket_bytes: -1, expected 1 to 1099511627776" },
    { "12.5", "-0.5", "w.json: optimizer_us: -0.5, expected 0 to 1e+09" },
    { "12.5", "true", "w.json: optimizer_us: true or false, expected a number from 0 to 1e+09" },
    { "\"batch\"", "\"batches\"",
      "w.json: batches: unknown key, expected one of format, version, name, source, batch, "
      "parallel, "
      "gradient_type, first_bucket_bytes, bucket_bytes, optimizer_us, layers" },
    { "\"ddp\"", "\"fsdp\"",
      "w.json: first_bucket_bytes: \"parallel\": \"fsdp\" has no such key, only format, version, "
      "name, "
      "source, batch, parallel, gradient_type, optimizer_us, layers" },
    { "\"batch\": 32", "\"batch\": 32, \"events\": []",
      "w.json: events: \"parallel\": \"ddp\" has no such key, only format, version, name, source, "
      "batch, parallel, gradient_type, first_bucket_bytes, bucket_bytes, optimizer_us, layers" },
    { "{\"format\"", "[{\"format\"", "w.json: line 1, column 412: ']' expected near end of file" },
    { "\"batch\": 32", "\"batch\": 32, \"batch\": 32",
      "w.json: line 1, column 100: duplicate object key near '\"batch\"'" },
    { "\"batch\": 32", "\"batch\": 99999999999999999999",
      "w.json: line 1, column 109: too big integer near '99999999999999999999'" },
    { "\"a test\"", "\"a \xff\"",
      "w.json: line 1, column 73: unable to decode byte 0xff near '\"a '" },
  };
  check_mistakes(layers_text, mistakes, sizeof mistakes / sizeof mistakes[0]);
  assert_int_equal(parse("[]"), -EINVAL);
  assert_string_equal(error, "w.json: a list, expected an object");
  assert_int_equal(parse(""), -EINVAL);
  assert_non_null(strstr(error, "w.json: line 1"));
}

UNIT_TEST(test_mistakes_in_layers) {
  static const struct mistake mistakes[] = {
    { "[9408, 64]", "[9408, 0]", "w.json: layers[0].parameters[1]: 0, expected 1 to 68719476736" },
    { "[9408, 64]", "[68719476737]",
      "w.json: layers[0].parameters[0]: 68719476737, expected 1 to 68719476736" },
    { "[9408, 64]", "[0.5]",
      "w.json: layers[0].parameters[0]: a fraction, expected a whole number, 1 to "
      "68719476736" },
    { "[9408, 64]", "9408", "w.json: layers[0].parameters: a number, expected a list" },
    { "\"parameters\": [],", "", "w.json: layers[1].parameters: missing" },
    { "\"forward_us\": 0", "\"forward_us\": -1",
      "w.json: layers[1].forward_us: -1, expected 0 to 1e+09" },
    { "1625", "\"1625\"",
      "w.json: layers[0].backward_us: a text, expected a number from 0 to 1e+09" },
    { "1e2", "1e10", "w.json: layers[1].backward_us: 1e+10, expected 0 to 1e+09" },
    { "\"backward_us\": 1625", "\"backwards_us\": 1625",
      "w.json: layers[0].backwards_us: unknown key, expected one of name, parameters, forward_us, "
      "backward_us, activations" },
    { "802816", "0", "w.json: layers[0].activations: 0, expected 1 to 68719476736" },
    { "\"relu\"", "\"\"", "w.json: layers[1].name: 0 characters long, expected 1 to 4096" },
    { "{\"name\": \"conv1\"", "7, {\"name\": \"conv1\"",
      "w.json: layers[0]: a number, expected an object" },
  };
  check_mistakes(layers_text, mistakes, sizeof mistakes / sizeof mistakes[0]);
  assert_int_equal(
      parse(
          "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"t\", \"source\": \"t\","
          " \"batch\": 1, \"parallel\": \"tensor\", \"gradient_type\": \"half\", \"layers\": []}"),
      -EINVAL);
  assert_string_equal(error, "w.json: layers: 0 entries, expected 1 to 100000");
}

UNIT_TEST(test_tensor_needs_activations) {
  static const char text[] =
      "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"t\", \"source\": \"t\","
      " \"batch\": 1, \"parallel\": \"tensor\", \"gradient_type\": \"half\", \"layers\":"
      " [{\"name\": \"a\", \"parameters\": [1], \"forward_us\": 1, \"backward_us\": 1}]}";
  assert_int_equal(parse(text), -EINVAL);
  assert_string_equal(error, "w.json: layers: no layer has activations, which \"parallel\": "
                             "\"tensor\" exchanges");
  assert_int_equal(parse(with(text, "\"forward_us\"", "\"activations\": 5, \"forward_us\"")), 0);
  workload_free(&workload);
}

UNIT_TEST(test_mistakes_in_events) {
  static const struct mistake mistakes[] = {
    { "\"wait\": 4", "\"wait\": 5",
      "w.json: events[4].wait: 5, expected the id of a collective "
      "or exchange before it" },
    { "\"wait\": 4", "\"wait\": 0", "w.json: events[4].wait: 0, expected 1 to 2147483647" },
    { "\"id\": 9", "\"id\": 0", "w.json: events[1].id: 0, expected 1 to 2147483647" },
    { "\"id\": 9", "\"id\": 4",
      "w.json: events[2].id: 4 is also the id of another collective or exchange" },
    { "{\"compute_us\": 120.5}", "{\"wait\": 9}",
      "w.json: events[0].wait: 9, expected the id of a collective or exchange before it" },
    { "{\"compute_us\": 120.5}", "{}",
      "w.json: events[0]: expected \"compute_us\", \"collective\", \"exchange\" or \"wait\" in "
      "it" },
    { "{\"compute_us\": 120.5}", "120.5", "w.json: events[0]: a number, expected an object" },
    { "120.5", "-1", "w.json: events[0].compute_us: -1, expected 0 to 1e+09" },
    { "{\"compute_us\": 120.5}", "{\"compute_us\": 1, \"wait\": 4}",
      "w.json: events[0].wait: unknown key, expected one of compute_us, only" },
    { "\"all_reduce\"", "\"allreduce\"",
      "w.json: events[1].collective: \"allreduce\", expected all_reduce, all_gather, "
      "reduce_scatter, "
      "broadcast, reduce, sendrecv or alltoall" },
    { "1048576", "0", "w.json: events[1].elements: 0, expected 1 to 68719476736" },
    { "\"elements\": 1048576,", "", "w.json: events[1].elements: missing" },
    { "\"max\"", "\"xor\"",
      "w.json: events[1].redop: \"xor\", expected sum, prod, max, min, avg or mulsum" },
    { "\"redop\": \"max\"", "\"root\": 1", "w.json: events[1].root: all_reduce has no root" },
    { "\"root\": 3", "\"redop\": \"sum\"", "w.json: events[2].redop: broadcast has no reduction" },
    { "\"root\": 3", "\"root\": -1", "w.json: events[2].root: -1, expected 0 to 16383" },
    { "\"group\": \"tp\"", "\"group\": \"pp\"",
      "w.json: events[1].group: \"pp\", expected \"world\" or a name of groups" },
    { "\"group\": \"tp\"", "\"group\": 1",
      "w.json: events[1].group: a number, expected the name of a group" },
    { ", \"type\": \"int64\"", "",
      "w.json: events[3].type: missing, and there is no gradient_type" },
    { "\"size\": 2", "\"size\": 0", "w.json: groups[0].size: 0, expected 1 to 16384" },
    { "\"stride\": 4", "\"stride\": 99999",
      "w.json: groups[0].stride: 99999, expected 1 to 16384" },
    { "\"tp\", \"size\"", "\"world\", \"size\"",
      "w.json: groups[0].name: \"world\" is the group of all ranks, expected another name" },
    { "\"stride\": 4}", "\"stride\": 4}, {\"name\": \"tp\", \"size\": 2, \"stride\": 1}",
      "w.json: groups[1].name: \"tp\" is also groups[0], expected another name" },
    { "\"stride\": 4", "\"strides\": 4",
      "w.json: groups[0].strides: unknown key, expected one of name, size, stride" },
    { "\"groups\": [", "\"groups\": {",
      "w.json: line 1, column 126: string or '}' expected near '{'" },
    { "\"parallel\": \"events\"", "\"parallel\": \"events\", \"bucket_bytes\": 1",
      "w.json: bucket_bytes: \"parallel\": \"events\" has no such key, only format, version, name, "
      "source, batch, parallel, gradient_type, optimizer_us, groups, events" },
  };
  check_mistakes(events_text, mistakes, sizeof mistakes / sizeof mistakes[0]);
}

/* ---- sends, receives, and uneven ones ---- */

static const char exchange_text[] =
    "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"x\", \"source\": \"a test\","
    " \"batch\": 1, \"parallel\": \"events\", \"gradient_type\": \"bfloat16\","
    " \"groups\": [{\"name\": \"pp\", \"size\": 2, \"stride\": 1}],"
    " \"events\": [{\"exchange\": [{\"send\": 1, \"elements\": 10}, {\"recv\": 0, \"elements\": "
    "30}],"
    "   \"group\": \"pp\", \"id\": 5, \"only\": {\"group\": \"pp\", \"rank\": 1}},"
    "  {\"wait\": 5, \"only\": {\"group\": \"pp\", \"rank\": 1}},"
    "  {\"collective\": \"alltoall\", \"sends\": [3, 0], \"id\": 6},"
    "  {\"wait\": 6, \"only\": {\"group\": \"pp\", \"rank\": 0}}]}";

UNIT_TEST(test_exchange) {
  assert_int_equal(parse(exchange_text), 0);
  const struct plan_item *events = workload.events;
  assert_int_equal(workload.event_count, 5);
  assert_int_equal(events[0].kind, PLAN_SEND);
  assert_int_equal(events[0].collective.root, 1);
  assert_int_equal(events[0].collective.elements, 10);
  assert_int_equal(events[1].kind, PLAN_RECV);
  assert_int_equal(events[1].collective.root, 0);
  assert_int_equal(events[1].collective.elements, 30);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(events[i].number, 1);
    assert_int_equal(events[i].event, 0);
    assert_int_equal(events[i].collective.type, ELEMENT_BFLOAT16);
    assert_int_equal(events[i].collective.group, 1);
    assert_int_equal(events[i].only.group, 1);
    assert_int_equal(events[i].only.place, 2);
    assert_true(events[i].is_waited);
  }
  assert_int_equal(events[2].number, 1);
  assert_int_equal(events[3].number, 2);
  assert_int_equal(events[3].event, 2);
  assert_int_equal(events[3].collective.elements, 3);
  assert_int_equal(events[3].collective.split->count, 2);
  assert_int_equal(events[3].collective.split->counts[0], 3);
  assert_false(events[3].collective.split->is_received);
  assert_false(events[3].is_waited); /* not by all */
  workload_free(&workload);
}

UNIT_TEST(test_mistakes_in_exchanges) {
  static const struct mistake mistakes[] = {
    { "{\"send\": 1, \"elements\": 10}", "5",
      "w.json: events[0].exchange[0]: a number, expected an object" },
    { "\"send\": 1, ", "", "w.json: events[0].exchange[0]: expected \"send\" or \"recv\" in it" },
    { "\"send\": 1, ", "\"send\": 1, \"recv\": 1, ",
      "w.json: events[0].exchange[0].recv: a send has no such key, only send, elements" },
    { "\"elements\": 30", "\"elements\": 0",
      "w.json: events[0].exchange[1].elements: 0, expected 1 to 68719476736" },
    { ", \"elements\": 30", "", "w.json: events[0].exchange[1].elements: missing" },
    { "\"recv\": 0", "\"recv\": -1",
      "w.json: events[0].exchange[1].recv: -1, expected 0 to 16383" },
    { "[{\"send\": 1, \"elements\": 10}, {\"recv\": 0, \"elements\": 30}]", "[]",
      "w.json: events[0].exchange: 0 entries, expected 1 to 4096" },
    { "[{\"send\": 1, \"elements\": 10}, {\"recv\": 0, \"elements\": 30}]", "7",
      "w.json: events[0].exchange: a number, expected a list" },
    { "\"rank\": 1}", "\"rank\": -1}", "w.json: events[0].only.rank: -1, expected 0 to 16383" },
    { ", \"rank\": 1}", "}", "w.json: events[0].only.rank: missing" },
    { "\"only\": {\"group\": \"pp\"", "\"only\": {\"group\": \"tp\"",
      "w.json: events[0].only.group: \"tp\", expected \"world\" or a name of groups" },
    { "\"gradient_type\": \"bfloat16\",", "",
      "w.json: events[0].type: missing, and there is no gradient_type" },
    { "[3, 0]", "[]", "w.json: events[2].sends: 0 entries, expected 1 to 256" },
    { "[3, 0]", "[0, 0]", "w.json: events[2].sends: 0 elements in all, expected 1 to 68719476736" },
    { "[3, 0]", "[3, -1]", "w.json: events[2].sends[1]: -1, expected 0 to 68719476736" },
    { "[3, 0]", "[3, 0], \"receives\": [3, 0]",
      "w.json: events[2].receives: an alltoall has sends or receives, not both" },
    { "[3, 0]", "[3, 0], \"elements\": 4",
      "w.json: events[2].elements: an alltoall has elements, sends or receives, not two" },
    { "\"alltoall\"", "\"all_gather\"",
      "w.json: events[2].sends: all_gather has elements, only alltoall may differ by rank" },
    { "\"wait\": 6", "\"wait\": 7",
      "w.json: events[3].wait: 7, expected the id of a collective or exchange before it" },
  };
  check_mistakes(exchange_text, mistakes, sizeof mistakes / sizeof mistakes[0]);
}

/* What a file says must not steer a terminal. */
UNIT_TEST(test_messages_are_plain) {
  assert_int_equal(parse(with(layers_text, "\"ddp\"", "\"\\u001b[31m\"")), -EINVAL);
  assert_null(strchr(error, '\x1b'));
  assert_int_equal(parse(with(layers_text, "\"batch\"", "\"\\u0007\"")), -EINVAL);
  assert_null(strchr(error, '\a'));
}

/* ---- files ---- */

UNIT_TEST(test_files) {
  char path[] = "/tmp/test-coll-workload-XXXXXX";
  int fd = mkstemp(path);
  assert_int_equal(write(fd, layers_text, sizeof layers_text - 1), sizeof layers_text - 1);
  close(fd);
  assert_int_equal(workload_read(&workload, path, error), 0);
  assert_string_equal(workload.name, "two");
  workload_free(&workload);
  unlink(path);
  assert_int_equal(workload_read(&workload, path, error), -ENOENT);
  assert_non_null(strstr(error, path));
  assert_non_null(strstr(error, "No such file"));
  assert_int_equal(workload_read(&workload, "/tmp", error), -EISDIR);
  assert_string_equal(error, "/tmp: Is a directory");
}

UNIT_TEST(test_where_workloads_are) {
  char path[PATH_MAX];
  assert_int_equal(workload_find("mine.json", path, error), 0);
  assert_string_equal(path, "mine.json");
  assert_int_equal(workload_find("./mine", path, error), 0);
  assert_string_equal(path, "./mine");
  assert_int_equal(workload_find("resnet50", path, error), 0);
  assert_non_null(strstr(path, "/tuner_plugin/workloads/resnet50.json"));
  assert_int_equal(workload_find("resnet51", path, error), -ENOENT);
  assert_non_null(strstr(error, "no workload resnet51; built in: alexnet, "));
}

UNIT_MAIN(NULL, NULL)
