/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: everything their text can say. Errors are in test_profile_bad.c.
 */
#include "common/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/each_failure.h"
#include "tests/lib/json_text.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static const char complete_path[] = "tests/data/profiles/complete.profile";

#define HEAD "{'schema': 2, 'id': 'a'"

/* Read or parsed last. */
static struct profile profile;
static struct profile_error error;

static int release(void **state) {
  profile_free(&profile);
  return test_tree_remove(state);
}

#define TEST(name) UNIT_TEST_WITH(name, test_tree_create, release)

static void parse(const char *text) {
  profile_free(&profile);
  text = json_text(text);
  assert_int_equal(profile_parse(text, strlen(text), &profile, &error), 0);
}

static void read_complete(void) {
  int result = profile_read(complete_path, &profile, &error);
  if (result < 0) {
    fail_msg("%s", error.text);
  }
}

/* The canonical text, in memory that the caller frees. */
static char *write_text(const struct profile *of, size_t *bytes) {
  char *text = NULL;
  FILE *to = open_memstream(&text, bytes);
  assert_non_null(to);
  assert_int_equal(profile_write(of, to), 0);
  fclose(to);
  return text;
}

/* ---- what is good ---- */

TEST(sections_are_read) {
  read_complete();
  assert_string_equal(profile.meta.id, "test-complete_1.0");
  assert_string_equal(profile.meta.created, "2026-08-01");
  assert_string_equal(profile.meta.source, "two hosts, # is no comment here");
  assert_int_equal(profile.meta.nccl_min, 21901);
  assert_int_equal(profile.meta.nccl_max, 23099);
  assert_string_equal(profile.fit.cloud, "AWS");
  assert_string_equal(profile.fit.instance_type, "p4d.*, p4de.24xlarge");
  assert_string_equal(profile.fit.topology, "43d74c2872d9");
  assert_int_equal(profile.net.flows, 8);
  assert_int_equal(profile.net.chunk_bytes, 128 << 10);
  assert_int_equal(profile.net.speed_mbps, 100000);
  assert_int_equal(profile.table_count, 6);
  profile_free(&profile);
  assert_null(profile.tables);
}

static void assert_row(const struct profile_row *row, uint64_t lo, uint64_t hi,
                       enum profile_algorithm algorithm, enum profile_protocol protocol,
                       uint32_t channels) {
  assert_true(row->bytes_lo == lo);
  assert_true(row->bytes_hi == hi);
  assert_int_equal(row->cell.algorithm, algorithm);
  assert_int_equal(row->cell.protocol, protocol);
  assert_int_equal(row->cell.channels, channels);
}

TEST(tables_are_read) {
  read_complete();
  const struct profile_table *table = profile_find_table(&profile, PROFILE_ALLREDUCE, 2, 8);
  assert_non_null(table);
  assert_int_equal(table->row_count, 3);
  assert_row(&table->rows[0], 0, 65536, PROFILE_TREE, PROFILE_LL, 0);
  assert_row(&table->rows[1], 65536, 1 << 20, PROFILE_TREE, PROFILE_LL128, 2);
  assert_row(&table->rows[2], 4 << 20, UINT64_MAX, PROFILE_RING, PROFILE_SIMPLE, 64);
  table = profile_find_table(&profile, PROFILE_ALLGATHER, 4, 1);
  assert_non_null(table);
  assert_row(&table->rows[0], 1024, 2048, PROFILE_PAT, PROFILE_SIMPLE, 1);
  assert_int_equal(profile_find_table(&profile, PROFILE_REDUCESCATTER, 4, 1)->row_count, 0);
  table = profile_find_table(&profile, PROFILE_BROADCAST, 4, 1);
  assert_int_equal(table->rows[0].cell.algorithm, PROFILE_COLLNET_DIRECT);
  assert_int_equal(table->rows[1].cell.algorithm, PROFILE_COLLNET_CHAIN);
  table = profile_find_table(&profile, PROFILE_REDUCE, 4, 1);
  assert_int_equal(table->rows[0].cell.algorithm, PROFILE_NVLS);
  assert_int_equal(table->rows[1].cell.algorithm, PROFILE_NVLS_TREE);
  const struct profile_row *row = profile_find_table(&profile, PROFILE_ALLREDUCE, 4, 8)->rows;
  assert_row(row, 65536, 1 << 20, PROFILE_RING, PROFILE_SIMPLE, 8);
  assert_true(row->is_measured);
  assert_int_equal(row->over.algorithm, PROFILE_TREE);
  assert_int_equal(row->over.protocol, PROFILE_SIMPLE);
  assert_int_equal(row->default_ns, 812450);
  assert_int_equal(row->choice_ns, 700000);
  assert_int_equal(row->noise_permille, 21);
  assert_int_equal(row[1].default_ns, 9001);
  assert_int_equal(row[1].noise_permille, 0);
  assert_false(profile.tables[0].rows[0].is_measured);
  assert_null(profile_find_table(&profile, PROFILE_ALLREDUCE, 8, 2));
  assert_null(profile_find_table(&profile, PROFILE_REDUCE, 2, 8));
}

/* The numbers go into NCCL's table as they are: nccl_tuner.h:27-43. */
TEST(numbers_are_those_of_nccl) {
  assert_string_equal(profile_collective_name((enum profile_collective)0), "broadcast");
  assert_string_equal(profile_collective_name((enum profile_collective)4), "allreduce");
  assert_string_equal(profile_algorithm_name((enum profile_algorithm)0), "tree");
  assert_string_equal(profile_algorithm_name((enum profile_algorithm)1), "ring");
  assert_string_equal(profile_algorithm_name((enum profile_algorithm)6), "pat");
  assert_string_equal(profile_protocol_name((enum profile_protocol)0), "ll");
  assert_string_equal(profile_protocol_name((enum profile_protocol)2), "simple");
  assert_string_equal(profile_algorithm_name(PROFILE_ALGORITHM_COUNT), "?");
  assert_string_equal(profile_protocol_name(PROFILE_PROTOCOL_COUNT), "?");
  assert_string_equal(profile_collective_name(PROFILE_COLLECTIVE_COUNT), "?");
}

TEST(smallest_profile_is_an_id) {
  parse(HEAD "}");
  assert_string_equal(profile.meta.id, "a");
  assert_int_equal(profile.meta.nccl_max, 0);
  assert_int_equal(profile.table_count, 0);
}

TEST(notes_are_for_people) {
  parse("{'notes': [{'schema': 9}, null], 'id': 'a', 'schema': 2}");
  assert_string_equal(profile.meta.id, "a");
}

/* ---- writing and identity ---- */

/* It has the canonical form, but for the notes. */
TEST(what_is_written_is_what_was_read) {
  char expected[4096];
  size_t bytes;
  FILE *from = fopen(complete_path, "re");
  assert_non_null(from);
  expected[fread(expected, 1, sizeof expected - 1, from)] = '\0';
  fclose(from);
  char *notes = strstr(expected, " \"notes\""), *next = strchr(notes, '\n') + 1;
  memmove(notes, next, strlen(next) + 1);
  read_complete();
  char *text = write_text(&profile, &bytes);
  assert_string_equal(text, expected);
  free(text);
}

static uint64_t hash_of(const char *text) {
  parse(text);
  return profile_hash(&profile);
}

#define ROWS(coll) ", 'tables': [{'coll': '" coll "', 'nodes': 2, 'ppn': 8, 'rows': ["

TEST(hash_sees_content_only) {
  uint64_t hash = hash_of(HEAD ", 'net': {'flows': 8}}");
  assert_true(hash == hash_of("{ 'net':\n{'flows': 8}, 'notes': 1, 'schema':2, 'id': 'a'}"));
  assert_false(hash == hash_of(HEAD ", 'net': {'flows': 4}}"));
  assert_false(hash == hash_of("{'schema': 2, 'id': 'b', 'net': {'flows': 8}}"));
  assert_false(hash_of(HEAD ROWS("reduce") "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll'}]}]}") ==
               hash_of(HEAD ROWS("reduce") "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll', "
                                           "'channels': 1}]}]}"));
}

/* The hash is compared between hosts, so it must not change by accident: this one was computed
 * with `sha256sum` over the canonical text. */
TEST(hash_is_stable) {
  assert_true(hash_of(HEAD "}") == UINT64_C(0xa78441dfb50ae539));
}

#define MEASURED                                                                                   \
  HEAD ROWS("allreduce") "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll', 'channels': 2, "

/* Ranks with other figures may choose otherwise. */
TEST(figures_are_part_of_the_decision) {
  static const char *const texts[] = {
    MEASURED "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 2000, 'choice_ns': 1}]}]}",
    MEASURED "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 2001, 'choice_ns': 1}]}]}",
    MEASURED "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 2000, 'choice_ns': 1, "
             "'noise_permille': 1}]}]}",
    MEASURED "'over_algo': 'ring', 'over_proto': 'll', 'default_ns': 2000, 'choice_ns': 1}]}]}",
  };
  enum { COUNT = sizeof texts / sizeof texts[0] };
  uint64_t hashes[COUNT];
  for (int i = 0; i < COUNT; i++) {
    parse(texts[i]);
    hashes[i] = profile_decision_hash(&profile);
    for (int j = 0; j < i; j++) {
      assert_true(hashes[i] != hashes[j]);
    }
  }
}

TEST(failing_stream_is_reported) {
  read_complete();
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  assert_int_equal(profile_write(&profile, full), -ENOSPC);
  fclose(full);
}

/* Hostile text: tests/fuzz/fuzz_profile.c. */
static void read_a_file(struct outcome *outcome) {
  memset(&error, 0, sizeof error);
  outcome->error = profile_read(complete_path, &profile, &error);
  outcome->is_told = strncmp(error.text, complete_path, strlen(complete_path)) == 0;
  if (outcome->error && profile.tables) {
    outcome->problem = "half a profile";
  }
  profile_free(&profile);
}

TEST(every_failing_call_is_survived) {
  static const struct entry_point entry = { .name = "profile_read", .run = read_a_file };
  /* The file, its objects, the tables and their rows. */
  assert_true(each_failure_of_all(&entry) > 8);
}

/* ---- files ---- */

TEST(unreadable_files_say_why) {
  char path[TREE_PATH_MAX];
  assert_int_equal(profile_read(tree_path(&test_tree, "none", path), &profile, &error), -ENOENT);
  assert_memory_equal(error.text, path, strlen(path));
  assert_string_equal(error.text + strlen(path), ": cannot be read: No such file or directory");
  assert_int_equal(profile_read(test_tree.root, &profile, &error), -EISDIR);
  tree_path(&test_tree, "fifo", path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(profile_read(path, &profile, &error), -ENODEV); /* and does not wait */
  tree_write(&test_tree, "bad", "%s", json_text(HEAD ",\n'net': {'flows': 'many'}}"));
  assert_int_equal(profile_read(tree_path(&test_tree, "bad", path), &profile, &error), -EINVAL);
  assert_memory_equal(error.text, path, strlen(path));
  assert_string_equal(error.text + strlen(path),
                      ": net.flows takes a whole number from 1 to 64, not \"many\"");
  tree_write(&test_tree, "bad", "%s", json_text(HEAD ",\n'net' {}}"));
  assert_int_equal(profile_read(path, &profile, &error), -EINVAL);
  assert_string_equal(error.text + strlen(path), ":2:7: ':' expected near '{'");
}

TEST(size_is_limited) {
  char path[TREE_PATH_MAX];
  char *text = malloc(PROFILE_FILE_MAX + 1);
  assert_non_null(text);
  memset(text, '\n', PROFILE_FILE_MAX + 1);
  memcpy(text, json_text(HEAD "}"), sizeof HEAD);
  tree_path(&test_tree, "big", path);
  tree_write_bytes(&test_tree, "big", text, PROFILE_FILE_MAX);
  assert_int_equal(profile_read(path, &profile, &error), 0);
  tree_write_bytes(&test_tree, "big", text, PROFILE_FILE_MAX + 1);
  assert_int_equal(profile_read(path, &profile, &error), -EFBIG);
  assert_non_null(strstr(error.text, "at most 1048576 bytes"));
  free(text);
}

/* ---- which row has a size ---- */

/* It finds what a linear search over the rows does. */
static void assert_found(const struct profile_table *table, uint64_t bytes) {
  const struct profile_row *found = NULL;
  for (size_t i = 0; i < table->row_count; i++) {
    if (bytes >= table->rows[i].bytes_lo && bytes < table->rows[i].bytes_hi) {
      found = &table->rows[i];
    }
  }
  assert_ptr_equal(profile_find_row(table, bytes), found);
}

/* At each border and beside it: rows crowded at one size, over all octaves, up to the largest size;
 * with gaps and without. */
UNIT_TEST(finds_rows_however_they_are_spread) {
  enum { ROWS = 120 };
  static const struct {
    uint64_t first, apart, gap;
    int doubled_every; /* rows after which they lie twice as far apart; 0: never */
  } spreads[] = {
    { 0, 1024, 0, 0 },
    { 1, 1023, 0, 0 },
    { 0, 1000, 24, 0 },
    { 3, 1, 1, 0 },
    { (UINT64_C(1) << 40) - 60, 1, 0, 0 },
    { (UINT64_C(1) << 40) - 60, 2, 3, 0 },
    { (UINT64_C(1) << 63) - 180, 3, 0, 0 },
    { UINT64_MAX - ROWS, 1, 0, 0 },
    { 0, 1, 0, 2 },
    { 8, 8, 0, 3 },
    { 8, 8, 2, 3 },
  };
  for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++) {
    static struct profile_row rows[ROWS];
    uint64_t low = spreads[i].first, apart = spreads[i].apart;
    for (int row = 0; row < ROWS; row++) {
      rows[row] = (struct profile_row){ .bytes_lo = low, .bytes_hi = low + apart };
      low += apart + spreads[i].gap;
      int every = spreads[i].doubled_every;
      apart *= every > 0 && row % every == every - 1 ? 2 : 1;
    }
    const struct profile_table table = { .rows = rows, .row_count = ROWS };
    for (int row = 0; row < ROWS; row++) {
      for (int beside = -2; beside <= 2; beside++) {
        assert_found(&table, rows[row].bytes_lo + (uint64_t)(int64_t)beside);
        assert_found(&table, rows[row].bytes_hi + (uint64_t)(int64_t)beside);
      }
    }
    for (unsigned bit = 0; bit < 64; bit++) {
      assert_found(&table, UINT64_C(1) << bit);
      assert_found(&table, (UINT64_C(1) << bit) - 1);
    }
    assert_found(&table, UINT64_MAX);
  }
}
