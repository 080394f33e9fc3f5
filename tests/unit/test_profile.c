/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: everything their text can say, and every error with its place and what is accepted. */
#include "common/profile.h"

#include <ctype.h>
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

/* Notes are for people. */
TEST(smallest_profile_is_an_id) {
  parse("{'notes': [{'schema': 9}, null], 'id': 'a', 'schema': 2}");
  assert_string_equal(profile.meta.id, "a");
  assert_int_equal(profile.meta.nccl_max, 0);
  assert_int_equal(profile.table_count, 0);
}

/* ---- what is not accepted ---- */

struct bad_case {
  const char *text, *message; /* a part of it, which is its beginning if that is a place: "2:8: " */
};

static void assert_bad(const char *text, size_t bytes, const char *message) {
  memset(&profile, 0xa5, sizeof profile); /* whatever was there goes */
  assert_int_equal(profile_parse(text, bytes, &profile, &error), -EINVAL);
  assert_null(profile.tables);
  const char *found = strstr(error.text, message);
  bool is_placed = isdigit((unsigned char)error.text[0]);
  if (!found || is_placed != (found == error.text && isdigit((unsigned char)message[0]))) {
    fail_msg("%s: got %s", text, error.text);
  }
}

static void assert_all_bad(const char *before, const struct bad_case *cases, const char *after) {
  for (size_t i = 0; cases[i].text; i++) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s%s", before, cases[i].text, after);
    const char *json = json_text(text);
    assert_bad(json, strlen(json), cases[i].message);
  }
}

UNIT_TEST(what_is_no_json_is_placed) {
  static const struct bad_case cases[] = {
    { "", "1: '[' or '{' expected near end of file" },
    { "schema = 1\n", "1:6: '[' or '{' expected near 'schema'" },
    { HEAD ",\n 'net' {}}", "2:8: ':' expected near '{'" },
    { HEAD ",\n 'id': 'b'}", "2:5: duplicate object key near '\"id\"'" },
    { HEAD "} x", "1:26: end of file expected near 'x'" },
    { HEAD ",\n 'source': 'a\001b'}", "2:13: control character 0x1 near '\"a'" },
    { HEAD ",\n 'source': 'a\\u0000b'}", "2:21: \\u0000 is not allowed" },
    { HEAD ",\n 'source': \033[2J}", "2:12: invalid token near '?'" }, /* not to a terminal */
    { HEAD ",\n 'net': {'flows': 99999999999999999999999}}", "2:41: too big integer" },
    { NULL, NULL },
  };
  assert_all_bad("", cases, "");
  static const char with_nul[] = "{\"schema\": 2, \"id\": \"a\0b\"}";
  assert_bad(with_nul, sizeof with_nul - 1, "1:22: control character 0x0 near");
}

UNIT_TEST(bad_structure_is_placed) {
  static const struct bad_case cases[] = {
    { "[]", "a profile must be a JSON object" },
    { "{'id': 'a'}", "schema is missing" },
    { "{'schema': 2}", "id is missing" },
    { "{'schema': 1, 'id': 'a'}", "schema takes 2 in this release, not 1" },
    { "{'schema': '2', 'id': 'a'}", "schema takes 2 in this release, not \"2\"" },
    { HEAD ", 'nets': {}}", "a profile has no key \"nets\"; it takes schema, id, created" },
    { HEAD ", 'net': []}", "net must be a JSON object" },
    { HEAD ", 'net': {'id': 8}}",
      "net has no key \"id\"; it takes flows, chunk_bytes, speed_mbps" },
    { HEAD ", 'match': {'gpu_count': 8}}", "match has no key \"gpu_count\"; it takes cloud, inst" },
    { HEAD ", 'tables': {}}", "tables takes an array of at most 1024 tables, not {}" },
    { HEAD ", '\\u001b[2J': 1}", "has no key \"?[2J\"" },
    { NULL, NULL },
  };
  assert_all_bad("", cases, "");
}

UNIT_TEST(bad_values_are_placed) {
  static const struct bad_case cases[] = {
    { "'created': '1/8/2026'", "created takes letters, digits and . _ -, not \"1/8/2026\"" },
    { "'created': ''", "created takes letters" },
    { "'created': 2026", "created takes letters" },
    { "'created': '2026-08-011'", "created takes at most 10 bytes" },
    { "'source': ' '", "source takes a text without quotes" },
    { "'source': 'a\\'b\\''", "source takes a text without quotes, backslashes and control" },
    { "'source': 'a\\\\b'", "source takes a text without quotes" },
    { "'source': 'a\\nb'", "source takes a text without quotes" },
    { "'source': 'a\177b'", "source takes a text without quotes" },
    { "'nccl_min': '2.21'", "nccl_min takes a whole number from 1 to 999999, not \"2.21\"" },
    { "'nccl_min': 22200, 'nccl_max': 22199", "nccl_max is below nccl_min" },
    { "'match': {'cloud': 'amazon'}",
      "match.cloud takes aws|gcp|azure|alibaba|oci|tencent, not \"amazon\"" },
    { "'match': {'topology': '0123456789AB'}",
      "match.topology takes a fingerprint of 12 digits 0-9 and a-f, as stratus doctor" },
    { "'match': {'topology': '43d7'}", "not \"43d7\"" },
    { "'net': {'flows': 65}", "net.flows takes a whole number from 1 to 64, not 65" },
    { "'net': {'flows': 0}", "net.flows takes a whole number" },
    { "'net': {'flows': 8.5}", "not 8.5" },
    { "'net': {'flows': '8'}", "not \"8\"" },
    { "'net': {'chunk_bytes': 4095}", "net.chunk_bytes takes a whole number from 4096 to 4194304" },
    { "'net': {'chunk_bytes': 4194305}", "net.chunk_bytes takes" },
    { NULL, NULL },
  };
  assert_all_bad(HEAD ", ", cases, "}");
}

#define TABLE "{'coll': 'allreduce', 'nodes': 2, 'ppn': 8, 'rows': []}"

UNIT_TEST(bad_tables_are_placed) {
  static const struct bad_case cases[] = {
    { "8", "tables[0] must be a JSON object" },
    { TABLE ", {'coll': 'alltoall', 'nodes': 2, 'ppn': 8, 'rows': []}",
      "tables[1].coll takes broadcast|reduce|allgather|reducescatter|allreduce, not \"alltoall\"" },
    { "{'coll': 'allreduce', 'nodes': 0, 'ppn': 8, 'rows': []}",
      "tables[0].nodes takes a whole number from 1 to 1048576, not 0" },
    { "{'coll': 'allreduce', 'nodes': 2, 'rows': []}", "tables[0].ppn is missing" },
    { "{'coll': 'allreduce', 'nodes': 2, 'ppn': 8}", "tables[0].rows is missing" },
    { "{'coll': 'allreduce', 'nodes': 2, 'ppn': 8, 'rows': 1}", "tables[0].rows takes an array" },
    { TABLE ", {'coll': 'AllReduce', 'nodes': 2, 'ppn': 8, 'rows': []}",
      "tables[1] is a second table for allreduce, nodes 2, ppn 8" },
    { NULL, NULL },
  };
  assert_all_bad(HEAD ", 'tables': [", cases, "]}");
}

#define ROW "'bytes_lo': 65536, 'bytes_hi': 131072, 'algo': 'ring', 'proto': 'll'"
#define OVER "'over_algo': 'tree', 'over_proto': 'll', 'default_ns': 2"

UNIT_TEST(bad_rows_are_placed) {
  static const struct bad_case cases[] = {
    { "{'algo': 'ring', 'proto': 'll'}", "rows[0].bytes_lo is missing" },
    { "{'bytes_lo': 0, 'proto': 'll'}", "rows[0].algo is missing" },
    { "{'bytes_lo': -1}", "rows[0].bytes_lo takes a whole number from 0 to" },
    { "{'bytes_lo': '64K'}", "rows[0].bytes_lo takes a whole number" },
    { "{'algo': 'rings'}", "tables[0].rows[0].algo takes tree|ring|collnetdirect|collnetchain|" },
    { "{'proto': 'll64'}", "rows[0].proto takes ll|ll128|simple, not \"ll64\"" },
    { "{'channels': 65}", "rows[0].channels takes a whole number from 0 to 64, not 65" },
    { "{" ROW ", 'chunk': 1}", "rows[0] has no key \"chunk\"; it takes bytes_lo, bytes_hi, algo" },
    { "{'bytes_lo': 8, 'bytes_hi': 8, 'algo': 'ring', 'proto': 'll'}",
      "rows[0]: bytes_hi must be greater than bytes_lo" },
    { "{" ROW "}, {'bytes_lo': 131071, 'algo': 'ring', 'proto': 'll'}",
      "rows[1] overlaps the row before it" },
    { "{" ROW "}, {'bytes_lo': 0, 'bytes_hi': 8, 'algo': 'ring', 'proto': 'll'}",
      "rows[1] overlaps the row before it, or comes before it" },
    { "{'bytes_lo': 0, 'algo': 'ring', 'proto': 'll'}, {" ROW "}", "rows[1] overlaps" },
    { "{" ROW ", " OVER "}", "rows[0]: over_algo, over_proto, default_ns and choice_ns go toge" },
    { "{" ROW ", 'noise_permille': 1}", "and noise_permille with them" },
    { "{" ROW ", " OVER ", 'choice_ns': 0}", "choice_ns takes a whole number from 1 to" },
    { "{" ROW ", " OVER ", 'choice_ns': 1, 'noise_permille': 10001}", "from 0 to 10000" },
    { NULL, NULL },
  };
  assert_all_bad(HEAD ", 'tables': [{'coll': 'allreduce', 'nodes': 2, 'ppn': 8, 'rows': [", cases,
                 "]}]}");
}

UNIT_TEST(too_many_tables_are_refused) {
  size_t bytes;
  char *text = NULL;
  FILE *to = open_memstream(&text, &bytes);
  fputs("{\"tables\": [0", to);
  for (int i = 1; i <= 1024; i++) {
    fputs(", 0", to);
  }
  fputs("]}", to);
  fclose(to);
  assert_bad(text, bytes, "tables takes an array of at most 1024 tables, not [0,0,");
  free(text);
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
