/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are not accepted: every error with its place and what is accepted. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "tests/lib/json_text.h"
#include "tests/lib/unit.h"

#define HEAD "{'schema': 2, 'id': 'a'"

struct bad_case {
  const char *text, *message; /* a part of it, which is its beginning if that is a place: "2:8: " */
};

static void assert_bad(const char *text, size_t bytes, const char *message) {
  struct profile profile;
  struct profile_error error;
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
