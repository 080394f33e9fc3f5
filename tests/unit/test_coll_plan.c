/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: PyTorch's bucket rule and the other kinds of parallelism, by cases computed by hand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "tests/coll/replay/plan.h"
#include "tests/coll/replay/replay.h"

enum { TEXT_MAX = 8192, ITEMS_MAX = 256 };
static struct workload workload;
static struct plan_settings settings;
static struct plan_item items[ITEMS_MAX];
static int64_t count;
static char error[WORKLOAD_ERROR_MAX];

static void read_text(const char *text) {
  if (workload_parse(&workload, text, strlen(text), "w.json", error))
    fail_msg("%s", error);
}

/* A workload of layers, whose head is given in part. */
static void read_layers(const char *head, const char *layers) {
  char text[TEXT_MAX];
  snprintf(text, sizeof text,
           "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"t\", \"source\": \"t\","
           " \"batch\": 1, %s, \"layers\": [%s]}",
           head, layers);
  read_text(text);
}

static void read_events(const char *head, const char *events) {
  char text[TEXT_MAX];
  snprintf(text, sizeof text,
           "{\"format\": \"stratus-workload\", \"version\": 1, \"name\": \"t\", \"source\": \"t\","
           " \"batch\": 1, \"parallel\": \"events\", \"gradient_type\": \"float32\", %s"
           " \"events\": [%s]}",
           head, events);
  read_text(text);
}

static int set_up(void **state) {
  (void)state;
  settings = (struct plan_settings){ .ranks = 2, .compute_scale = 1, .bytes_scale = 1 };
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workload_free(&workload);
  return 0;
}

/* The plan as text, an item a line; a first call without room says how many there are. */
static const char *plan(void) {
  static char text[TEXT_MAX];
  char line[PLAN_TEXT_MAX];
  size_t used = 0;
  count = plan_make(&workload, &settings, NULL, 0, error);
  assert_in_range(count, 0, ITEMS_MAX);
  assert_int_equal(plan_make(&workload, &settings, items, ITEMS_MAX, error), count);
  text[0] = '\0';
  for (int64_t i = 0; i < count; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s\n",
                             plan_text(&workload, &items[i], settings.ranks, line));
  return text;
}

/* ---- ddp ---- */

#define DDP "\"parallel\": \"ddp\", \"gradient_type\": \"float32\""

/* Limits of 4000 and 8000 bytes: 1000 and 2000 elements. */
#define SMALL_BUCKETS DDP ", \"first_bucket_bytes\": 4000, \"bucket_bytes\": 8000"

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* Backwards: c's bias (10) and weight (989) are 999, one too few; b's 1 reaches the first limit
 * exactly. a's 300 and 1699 are 1999: again one too few, so the last 5000 joins them. */
TEST(test_buckets_close_when_they_reach_the_limit) {
  read_layers(
      SMALL_BUCKETS,
      "{\"name\": \"0\", \"parameters\": [7], \"forward_us\": 1, \"backward_us\": 2},"
      "{\"name\": \"1\", \"parameters\": [5000], \"forward_us\": 1, \"backward_us\": 4},"
      "{\"name\": \"a\", \"parameters\": [1699, 300], \"forward_us\": 1, \"backward_us\": 8},"
      "{\"name\": \"b\", \"parameters\": [1], \"forward_us\": 1, \"backward_us\": 16},"
      "{\"name\": \"c\", \"parameters\": [989, 10], \"forward_us\": 1, \"backward_us\": 32}");
  assert_string_equal(plan(), "compute 53.000\n" /* 5 forward, 32 + 16 backward */
                              "collective 1 all_reduce float sum - world 1000 4000\n"
                              "compute 12.000\n"
                              "collective 2 all_reduce float sum - world 6999 27996\n"
                              "compute 2.000\n"
                              "collective 3 all_reduce float sum - world 7 28\n");
}

/* Each tensor reaches a limit; both buckets of the layer start when its time has passed. */
TEST(test_a_layer_can_close_several_buckets) {
  read_layers(SMALL_BUCKETS ", \"optimizer_us\": 3",
              "{\"name\": \"a\", \"parameters\": [3000, 2000, 1000], \"forward_us\": 1,"
              " \"backward_us\": 2}");
  assert_string_equal(plan(), "compute 3.000\n"
                              "collective 1 all_reduce float sum - world 1000 4000\n"
                              "collective 2 all_reduce float sum - world 2000 8000\n"
                              "collective 3 all_reduce float sum - world 3000 12000\n"
                              "wait 3\n"
                              "compute 3.000\n");
}

/* PyTorch's limits of 1 MiB and 25 MiB with VGG16's last layers: the bias and the weight of the
 * last one pass the first limit; the weights of 411 MB and 67 MB are not split. */
TEST(test_default_buckets_of_vgg16) {
  read_layers(DDP, "{\"name\": \"conv\", \"parameters\": [2359296, 512], \"forward_us\": 1,"
                   " \"backward_us\": 1},"
                   "{\"name\": \"fc1\", \"parameters\": [102760448, 4096], \"forward_us\": 1,"
                   " \"backward_us\": 1},"
                   "{\"name\": \"fc2\", \"parameters\": [16777216, 4096], \"forward_us\": 1,"
                   " \"backward_us\": 1},"
                   "{\"name\": \"fc3\", \"parameters\": [4096000, 1000], \"forward_us\": 1,"
                   " \"backward_us\": 1}");
  assert_string_equal(plan(), "compute 5.000\n"
                              "collective 1 all_reduce float sum - world 4097000 16388000\n"
                              "compute 1.000\n"
                              "collective 2 all_reduce float sum - world 16781312 67125248\n"
                              "compute 1.000\n"
                              "collective 3 all_reduce float sum - world 102764544 411058176\n"
                              "compute 1.000\n"
                              "collective 4 all_reduce float sum - world 2359808 9439232\n");
}

/* Limits are bytes: half precision fits twice as many elements. */
TEST(test_limits_are_bytes) {
  read_layers(
      "\"parallel\": \"ddp\", \"gradient_type\": \"float16\", \"first_bucket_bytes\": 4000",
      "{\"name\": \"a\", \"parameters\": [1, 1999, 1], \"forward_us\": 1, \"backward_us\": 1}");
  assert_string_equal(plan(), "compute 2.000\n"
                              "collective 1 all_reduce half sum - world 2000 4000\n"
                              "collective 2 all_reduce half sum - world 1 2\n");
}

TEST(test_layers_without_parameters_or_time) {
  read_layers(SMALL_BUCKETS,
              "{\"name\": \"a\", \"parameters\": [5], \"forward_us\": 0, \"backward_us\": 0},"
              "{\"name\": \"b\", \"parameters\": [], \"forward_us\": 0, \"backward_us\": 0}");
  assert_string_equal(plan(), "collective 1 all_reduce float sum - world 5 20\n");
  workload_free(&workload);
  read_layers(SMALL_BUCKETS,
              "{\"name\": \"b\", \"parameters\": [], \"forward_us\": 2, \"backward_us\": 3}");
  assert_string_equal(plan(), "compute 5.000\n");
}

/* ---- scales ---- */

/* Halved limits with halved tensors close the same buckets; one element is always left. */
TEST(test_scales) {
  read_layers(
      SMALL_BUCKETS ", \"optimizer_us\": 10",
      "{\"name\": \"a\", \"parameters\": [3000], \"forward_us\": 1, \"backward_us\": 2},"
      "{\"name\": \"b\", \"parameters\": [1, 1000], \"forward_us\": 1, \"backward_us\": 2}");
  settings.compute_scale = 2;
  settings.bytes_scale = 0.5;
  assert_string_equal(plan(), "compute 8.000\n"
                              "collective 1 all_reduce float sum - world 500 2000\n"
                              "compute 4.000\n"
                              "collective 2 all_reduce float sum - world 1501 6004\n"
                              "wait 2\n"
                              "compute 20.000\n");
  settings.compute_scale = 1;
  settings.bytes_scale = 1e-9;
  assert_string_equal(plan(), "compute 4.000\n"
                              "collective 1 all_reduce float sum - world 1 4\n"
                              "collective 2 all_reduce float sum - world 1 4\n"
                              "compute 2.000\n"
                              "collective 3 all_reduce float sum - world 1 4\n"
                              "wait 3\n"
                              "compute 10.000\n");
  settings.bytes_scale = 3; /* rounded to the nearest */
  assert_non_null(strstr(plan(), " world 3000 12000\n"));
}

/* The first bucket keeps its limit, as with PyTorch's bucket_cap_mb. */
TEST(test_bucket_bytes_of_the_settings) {
  read_layers(SMALL_BUCKETS, "{\"name\": \"a\", \"parameters\": [10, 10, 10, 1000],"
                             " \"forward_us\": 1, \"backward_us\": 2}");
  settings.bucket_bytes = 80;
  assert_string_equal(plan(), "compute 3.000\n"
                              "collective 1 all_reduce float sum - world 1000 4000\n"
                              "collective 2 all_reduce float sum - world 20 80\n"
                              "collective 3 all_reduce float sum - world 10 40\n");
}

/* ---- fsdp and tensor ---- */

/* 100 and 7 elements are 25 and 2 (padded to 8) for each of 4 ranks; the layer between has none. */
TEST(test_fsdp) {
  settings.ranks = 4;
  read_layers("\"parallel\": \"fsdp\", \"gradient_type\": \"bfloat16\", \"optimizer_us\": 64",
              "{\"name\": \"a\", \"parameters\": [90, 10], \"forward_us\": 1, \"backward_us\": 8},"
              "{\"name\": \"b\", \"parameters\": [], \"forward_us\": 2, \"backward_us\": 16},"
              "{\"name\": \"c\", \"parameters\": [7], \"forward_us\": 4, \"backward_us\": 32}");
  assert_string_equal(plan(), "collective 1 all_gather bfloat16 - - world 25 200\n" /* a */
                              "collective 2 all_gather bfloat16 - - world 2 16\n"   /* c, ahead */
                              "wait 1\n"
                              "compute 3.000\n" /* a and b */
                              "wait 2\n"
                              "compute 4.000\n"                                     /* c */
                              "collective 3 all_gather bfloat16 - - world 2 16\n"   /* c again */
                              "collective 4 all_gather bfloat16 - - world 25 200\n" /* a, ahead */
                              "wait 3\n"
                              "compute 32.000\n"
                              "collective 5 reduce_scatter bfloat16 sum - world 2 16\n"
                              "compute 16.000\n"
                              "wait 4\n"
                              "compute 8.000\n"
                              "collective 6 reduce_scatter bfloat16 sum - world 25 200\n"
                              "wait 6\n"
                              "compute 64.000\n");
}

TEST(test_fsdp_of_one_rank) {
  settings.ranks = 1;
  read_layers("\"parallel\": \"fsdp\", \"gradient_type\": \"float32\"",
              "{\"name\": \"a\", \"parameters\": [3], \"forward_us\": 1, \"backward_us\": 2}");
  assert_string_equal(plan(), "collective 1 all_gather float - - world 3 12\n"
                              "wait 1\n"
                              "compute 1.000\n"
                              "collective 2 all_gather float - - world 3 12\n"
                              "wait 2\n"
                              "compute 2.000\n"
                              "collective 3 reduce_scatter float sum - world 3 12\n");
}

/* Limit of 100 elements: c and b are 120, a's 90 are left; all 210 parameters are gathered in two
 * parts when the optimizer has changed them. Shares of 4 ranks are padded. */
TEST(test_zero2) {
  settings.ranks = 4;
  read_layers("\"parallel\": \"zero2\", \"gradient_type\": \"float16\", \"bucket_bytes\": 200,"
              " \"optimizer_us\": 64",
              "{\"name\": \"a\", \"parameters\": [80, 10], \"forward_us\": 1, \"backward_us\": 8},"
              "{\"name\": \"b\", \"parameters\": [50], \"forward_us\": 2, \"backward_us\": 16},"
              "{\"name\": \"c\", \"parameters\": [70], \"forward_us\": 4, \"backward_us\": 32}");
  assert_string_equal(plan(), "compute 55.000\n"
                              "collective 1 reduce_scatter half sum - world 30 240\n"
                              "compute 8.000\n"
                              "collective 2 reduce_scatter half sum - world 23 184\n"
                              "wait 2\n"
                              "compute 64.000\n"
                              "collective 3 all_gather half - - world 25 200\n"
                              "collective 4 all_gather half - - world 25 200\n"
                              "collective 5 all_gather half - - world 3 24\n");
}

/* DeepSpeed's limits are 5e8 elements: more than these have. */
TEST(test_zero2_with_deepspeeds_limits) {
  read_layers("\"parallel\": \"zero2\", \"gradient_type\": \"float16\"",
              "{\"name\": \"a\", \"parameters\": [400000000], \"forward_us\": 1,"
              " \"backward_us\": 1}");
  assert_string_equal(plan(), "compute 2.000\n"
                              "collective 1 reduce_scatter half sum - world 200000000 800000000\n"
                              "wait 1\n"
                              "collective 2 all_gather half - - world 200000000 800000000\n");
}

TEST(test_tensor) {
  read_layers("\"parallel\": \"tensor\", \"gradient_type\": \"float16\", \"optimizer_us\": 5",
              "{\"name\": \"a\", \"parameters\": [90], \"forward_us\": 1, \"backward_us\": 4,"
              " \"activations\": 640},"
              "{\"name\": \"b\", \"parameters\": [10], \"forward_us\": 2, \"backward_us\": 8}");
  assert_string_equal(plan(), "compute 1.000\n"
                              "collective 1 all_reduce half sum - world 640 1280\n"
                              "wait 1\n"
                              "compute 14.000\n" /* b forward and backward, a backward */
                              "collective 2 all_reduce half sum - world 640 1280\n"
                              "wait 2\n"
                              "compute 5.000\n");
}

/* ---- events and groups ---- */

TEST(test_events) {
  settings.ranks = 8;
  read_events("\"optimizer_us\": 2, \"groups\": [{\"name\": \"tp\", \"size\": 4, \"stride\": 2}],",
              "{\"compute_us\": 1}, {\"compute_us\": 0.5},"
              "{\"collective\": \"all_gather\", \"elements\": 10, \"group\": \"tp\", \"id\": 5},"
              "{\"collective\": \"alltoall\", \"elements\": 3, \"type\": \"int64\"},"
              "{\"collective\": \"reduce\", \"elements\": 6, \"redop\": \"min\", \"root\": 7},"
              "{\"wait\": 5}, {\"compute_us\": 4},"
              "{\"collective\": \"sendrecv\", \"elements\": 9, \"group\": \"tp\"}");
  assert_string_equal(plan(), "compute 1.500\n"
                              "collective 1 all_gather float - - tp 10 160\n"
                              "collective 2 alltoall int64 - - world 3 192\n"
                              "collective 3 reduce float min 7 world 6 24\n"
                              "wait 1\n"
                              "compute 4.000\n"
                              "collective 4 sendrecv float - - tp 9 36\n"
                              "wait 3\n" /* the optimizer waits for all */
                              "wait 4\n"
                              "compute 2.000\n");
  struct plan_sum sum = plan_sum(&workload, items, (size_t)count, settings.ranks, 0);
  assert_int_equal(sum.collectives, 4);
  assert_int_equal(sum.bytes, 160 + 192 + 24 + 36);
  assert_int_equal(sum.buffer_bytes, 192);
  assert_true(sum.compute_us == 7.5);
}

/* Without an optimizer the list is what the file says. */
TEST(test_events_without_optimizer) {
  read_events("", "{\"collective\": \"broadcast\", \"elements\": 10, \"root\": 1}");
  assert_string_equal(plan(), "collective 1 broadcast float - 1 world 10 40\n");
}

/* ---- sends, receives, and what only some ranks do ---- */

#define PIPELINE "\"groups\": [{\"name\": \"pp\", \"size\": 2, \"stride\": 2}],"
#define FIRST "\"only\": {\"group\": \"pp\", \"rank\": 0}"
#define LAST "\"only\": {\"group\": \"pp\", \"rank\": 1}"

/* Times of other ranks are not added up, and the optimizer waits for what each stage started last
 * and has not waited for. */
TEST(test_pipeline) {
  settings.ranks = 4;
  read_events(
      "\"optimizer_us\": 8, " PIPELINE,
      "{\"compute_us\": 1, " FIRST "}, {\"compute_us\": 2, " FIRST "},"
      "{\"exchange\": [{\"send\": 1, \"elements\": 100}], \"group\": \"pp\", " FIRST "},"
      "{\"exchange\": [{\"recv\": 0, \"elements\": 100}], \"group\": \"pp\", \"id\": 1, " LAST
      "}, {\"wait\": 1, " LAST "}, {\"compute_us\": 4, " LAST "},"
      "{\"exchange\": [{\"send\": 0, \"elements\": 50}, {\"recv\": 0, \"elements\": 9}],"
      " \"type\": \"bfloat16\", \"group\": \"pp\", " LAST "},"
      "{\"exchange\": [{\"send\": 1, \"elements\": 9}, {\"recv\": 1, \"elements\": 50}],"
      " \"type\": \"bfloat16\", \"group\": \"pp\", \"id\": 2, " FIRST "},"
      "{\"wait\": 2, " FIRST "},"
      "{\"collective\": \"all_reduce\", \"elements\": 5}");
  assert_string_equal(plan(), "compute 3.000 @pp:0\n"
                              "send 1 float 1 pp 100 400 @pp:0\n"
                              "recv 2 float 0 pp 100 400 @pp:1\n"
                              "wait 2 @pp:1\n"
                              "compute 4.000 @pp:1\n"
                              "send 3 bfloat16 0 pp 50 100 @pp:1\n"
                              "recv 3 bfloat16 0 pp 9 18 @pp:1\n"
                              "send 4 bfloat16 1 pp 9 18 @pp:0\n"
                              "recv 4 bfloat16 1 pp 50 100 @pp:0\n"
                              "wait 4 @pp:0\n"
                              "collective 5 all_reduce float sum - world 5 20\n"
                              "wait 3 @pp:1\n"
                              "wait 5\n"
                              "compute 8.000\n");
  /* Ranks 0 and 1 are the first stage, 2 and 3 the last. */
  assert_true(plan_applies(&workload, &items[0], 4, 1) &&
              !plan_applies(&workload, &items[0], 4, 2));
  assert_true(plan_applies(&workload, &items[10], 4, 1) &&
              plan_applies(&workload, &items[10], 4, 3));
  struct plan_sum first = plan_sum(&workload, items, (size_t)count, 4, 0);
  struct plan_sum last = plan_sum(&workload, items, (size_t)count, 4, 3);
  assert_int_equal(first.numbers, 5);
  assert_int_equal(first.collectives, 3);
  assert_int_equal(first.bytes, 400 + 18 + 100 + 20);
  assert_int_equal(last.bytes, 400 + 100 + 18 + 20);
  assert_int_equal(first.buffer_bytes, 400);
  assert_true(first.compute_us == 3 + 8 && last.compute_us == 4 + 8);
}

/* An exchange needs room for all that it sends, and for all that it receives. */
TEST(test_room_of_an_exchange) {
  read_events("", "{\"exchange\": [{\"send\": 0, \"elements\": 10}, {\"recv\": 0, \"elements\": 9},"
                  " {\"send\": 1, \"elements\": 20}, {\"recv\": 1, \"elements\": 1}]}");
  plan();
  assert_int_equal(plan_sum(&workload, items, (size_t)count, 2, 0).buffer_bytes, 4 * 30);
}

/* Four experts on two ranks, then on four; what is sent comes back. */
TEST(test_uneven_alltoall) {
  read_events("", "{\"collective\": \"alltoall\", \"sends\": [8, 0, 4, 2]},"
                  "{\"collective\": \"alltoall\", \"receives\": [8, 0, 4, 2]}");
  assert_string_equal(plan(), "collective 1 alltoall float - - world 14 56 sends:8,6\n"
                              "collective 2 alltoall float - - world 14 56 receives:8,6\n");
  struct operation_counts counts = plan_counts(&workload, &items[0].collective, 2);
  assert_int_equal(counts.send, 14);
  assert_int_equal(counts.recv, 16); /* rank 0, from both */
  assert_int_equal(plan_counts(&workload, &items[1].collective, 2).send, 16);
  assert_int_equal(plan_sum(&workload, items, (size_t)count, 2, 0).buffer_bytes, 64);
  settings.ranks = 4;
  settings.bytes_scale = 0.25;
  assert_string_equal(plan(), "collective 1 alltoall float - - world 4 16 sends:2,0,1,1\n"
                              "collective 2 alltoall float - - world 4 16 receives:2,0,1,1\n");
  settings.ranks = 3;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error, "t: events[0].sends: 4 entries, expected a multiple of the group's 3 "
                             "ranks");
}

TEST(test_peers_that_are_not_there) {
  settings.ranks = 4;
  read_events(PIPELINE, "{\"compute_us\": 1}, {\"exchange\": [{\"send\": 1, \"elements\": 1},"
                        " {\"recv\": 2, \"elements\": 1}], \"group\": \"pp\"}");
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error, "t: events[1].exchange: recv: 2, expected 0 to 1 with 4 ranks");
  workload_free(&workload);
  read_events(PIPELINE, "{\"compute_us\": 1, \"only\": {\"group\": \"pp\", \"rank\": 2}}");
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error, "t: events[0].only.rank: 2, expected 0 to 1 with 4 ranks");
}

static void assert_group(int group, int rank, int wanted_rank, int wanted_color) {
  struct plan_group found = plan_group_of(&workload, group, 12, rank);
  assert_int_equal(found.rank, wanted_rank);
  assert_int_equal(found.color, wanted_color);
}

/* Of 12 ranks, groups of 3 that are 2 apart: 0 2 4, 1 3 5, 6 8 10, 7 9 11. */
TEST(test_groups) {
  static const int members[4][3] = { { 0, 2, 4 }, { 1, 3, 5 }, { 6, 8, 10 }, { 7, 9, 11 } };
  read_events("\"groups\": [{\"name\": \"x\", \"size\": 3, \"stride\": 2}],",
              "{\"compute_us\": 1}");
  for (int color = 0; color < 4; color++) {
    for (int member = 0; member < 3; member++)
      assert_group(1, members[color][member], member, color);
  }
  assert_int_equal(plan_group_of(&workload, 1, 12, 0).ranks, 3);
  assert_int_equal(plan_group_of(&workload, PLAN_WORLD, 12, 5).ranks, 12);
  assert_group(PLAN_WORLD, 5, 5, 0);
}

/* Without a size, all ranks that are so far apart. */
TEST(test_groups_of_all_ranks_apart) {
  read_events("\"groups\": [{\"name\": \"dp\", \"stride\": 4}],",
              "{\"collective\": \"all_gather\", \"elements\": 1, \"group\": \"dp\"}");
  assert_int_equal(plan_group_of(&workload, 1, 12, 0).ranks, 3);
  assert_int_equal(plan_group_of(&workload, 1, 16, 0).ranks, 4);
  for (int rank = 0; rank < 12; rank++)
    assert_group(1, rank, rank / 4, rank % 4);
  settings.ranks = 8;
  assert_string_equal(plan(), "collective 1 all_gather float - - dp 1 8\n");
  settings.ranks = 6;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error,
                      "t: groups[0]: groups of all ranks 4 apart need a multiple of 4 ranks, "
                      "and there are 6");
}

TEST(test_what_ranks_cannot_do) {
  read_events("\"groups\": [{\"name\": \"x\", \"size\": 3, \"stride\": 2}],",
              "{\"compute_us\": 1}, {\"collective\": \"broadcast\", \"elements\": 1, \"root\": 2,"
              " \"group\": \"x\"}, {\"collective\": \"reduce\", \"elements\": 1, \"root\": 6}");
  settings.ranks = 8;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error,
                      "t: groups[0]: groups of 3 ranks, 2 apart, need a multiple of 6 ranks, "
                      "and there are 8");
  settings.ranks = 1;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_non_null(strstr(error, "and there is 1"));
  settings.ranks = 6;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), -EINVAL);
  assert_string_equal(error, "t: events[2].root: 6, expected 0 to 5 with 6 ranks");
  settings.ranks = 12;
  assert_int_equal(plan_make(&workload, &settings, NULL, 0, error), 3);
}

/* ---- what is reported ---- */

/* As numpy.percentile. */
TEST(test_percentiles) {
  static const double sorted[] = { 1, 2, 4, 8 };
  assert_true(replay_percentile(sorted, 4, 50) == 3);
  assert_true(replay_percentile(sorted, 4, 75) == 5);
  assert_true(replay_percentile(sorted, 4, 100) == 8);
  assert_true(replay_percentile(sorted, 4, 0) == 1);
  assert_true(replay_percentile(sorted, 1, 95) == 1);
}

UNIT_MAIN(NULL, NULL)
