/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are not accepted: every error with its place, line and column. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "tests/lib/unit.h"

#define HEAD "schema = 1\n[meta]\nid = a\n"

static int parse(const char *text, struct profile *profile, struct profile_error *error) {
  return profile_parse(text, strlen(text), profile, error);
}

struct bad_case {
  const char *text;
  int line;
  int column;
  const char *message; /* part of it */
};

static void assert_all_bad(const struct bad_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct profile profile;
    struct profile_error error;
    assert_int_equal(parse(cases[i].text, &profile, &error), -EINVAL);
    assert_null(profile.tables);
    if (!strstr(error.text, cases[i].message) || error.line != cases[i].line ||
        error.column != cases[i].column) {
      fail_msg("case %zu: got %d:%d: %s", i, error.line, error.column, error.text);
    }
  }
}

#define ASSERT_ALL_BAD(cases) assert_all_bad(cases, sizeof(cases) / sizeof((cases)[0]))

UNIT_TEST(bad_structure_is_placed) {
  static const struct bad_case cases[] = {
    { "", 0, 0, "starts with \"schema = 1\"" },
    { "# nothing\n\n", 0, 0, "starts with \"schema = 1\"" },
    { "[meta]\nid = a\n", 1, 1, "starts with \"schema = 1\"" },
    { "schema = 2\n", 1, 10, "schema 2 is not known; this version reads schema 1" },
    { "schema =\n", 1, 1, "starts with \"schema = 1\"" },
    { "schema = 1\nid = a\n", 2, 1, "expected a section" },
    { "schema = 1\n", 0, 0, "[meta] with an id is missing" },
    { "schema = 1\n[meta]\n", 0, 0, "[meta] with an id is missing" },
    { HEAD "[nets]\n", 4, 1, "unknown section; there are [meta], [match], [net] and" },
    { HEAD "[net x]\n", 4, 1, "unknown section" },
    { HEAD "[net\n", 4, 1, "not closed by ]" },
    { HEAD "[\n", 4, 1, "not closed by ]" },
    { HEAD "[]\n", 4, 1, "unknown section" },
    { HEAD "[meta]\n", 4, 1, "a second section [meta]" },
    { HEAD "  flow = 8\n", 4, 3, "[meta] has no key \"flow\"; it takes id, created, source" },
    { HEAD "[net]\nid = 8\n", 5, 1, "[net] has no key \"id\"; it takes flows, chunk_bytes" },
    { HEAD "id = b\n", 4, 1, "id is given twice" },
    { HEAD "created\n", 4, 1, "expected \"key = value\"" },
    { HEAD "created =   # none\n", 4, 9, "created has no value" },
    { HEAD "source = a\001b\n", 4, 11, "byte 0x01 is not text" },
    { HEAD "source = a\rb\n", 4, 11, "byte 0x0d is not text" },
  };
  ASSERT_ALL_BAD(cases);
}

UNIT_TEST(bad_values_are_placed) {
  static const struct bad_case cases[] = {
    { "schema = 1\n[meta]\nid = a/b\n", 3, 7, "id takes letters, digits and . _ -" },
    { "schema = 1\n[meta]\nid = \"\"\n", 3, 7, "id has no value" },
    { "schema = 1\n[meta]\n"
      "id = 0123456789012345678901234567890123456789012345678901234567890123\n",
      3, 6, "id takes at most 63 bytes" },
    { HEAD "created = 1/8/2026\n", 4, 12, "created takes letters, digits and . _ -" },
    { HEAD "[match]\ntopology = 0123456789AB\n", 5, 12,
      "topology takes a fingerprint of 12 digits" },
    { HEAD "[match]\ntopology = 43d7\n", 5, 12, "not \"43d7\"" },
    { HEAD "source = \"open\n", 4, 10, "the quote is not closed" },
    { HEAD "source = \"\n", 4, 10, "the quote is not closed" },
    { HEAD "source = a \"b\"\n", 4, 12, "cannot hold a double quote" },
    { HEAD "nccl_min = 2\n", 4, 12, "nccl_min takes a version such as 2.21 or 2.21.5" },
    { HEAD "nccl_min = 2.\n", 4, 12, "nccl_min takes a version" },
    { HEAD "nccl_min = 2.21.5.1\n", 4, 12, "nccl_min takes a version" },
    { HEAD "nccl_min = 2.100\n", 4, 12, "nccl_min takes a version" },
    { HEAD "nccl_min = -2.21\n", 4, 12, "nccl_min takes a version" },
    { HEAD "nccl_min = v2.21\n", 4, 12, "nccl_min takes a version" },
    { HEAD "nccl_min = 2.22\nnccl_max = 2.21\n", 0, 0, "nccl_max is below nccl_min" },
    { HEAD "[match]\ncloud = amazon\n", 5, 9,
      "cloud takes aws|gcp|azure|alibaba|oci|tencent, not" },
    { HEAD "[match]\ngpu_count = 8\n", 5, 1,
      "[match] has no key \"gpu_count\"; it takes cloud, instance" },
    { HEAD "[env]\nNCCL_ALGO = ring\n", 4, 1, "unknown section" },
    { HEAD "[net]\nflows = 65\n", 5, 9, "flows takes a number from 1 to 64, not \"65\"" },
    { HEAD "[net]\nflows = 8K\n", 5, 9, "flows takes a number" },
    { HEAD "[net]\nflows = -1\n", 5, 9, "flows takes a number" },
    { HEAD "[net]\nflows = 99999999999999999999999\n", 5, 9, "flows takes a number" },
    { HEAD "[net]\nchunk_bytes = 1K\n", 5, 15,
      "chunk_bytes takes a size from 4K to 4M, not \"1K\"" },
    { HEAD "[net]\nchunk_bytes = 4097K\n", 5, 15, "chunk_bytes takes a size" },
    { HEAD "[net]\nlatency_us = 7\n", 5, 1, "[net] has no key \"latency_us\"" },
  };
  ASSERT_ALL_BAD(cases);
}

#define TABLE HEAD "[table allreduce nodes=2 ppn=8]\n"

UNIT_TEST(bad_tables_are_placed) {
  static const struct bad_case cases[] = {
    { HEAD "[table]\n", 4, 7, "table takes broadcast|reduce|allgather|reducescatter|allr" },
    { HEAD "[table alltoall nodes=2 ppn=8]\n", 4, 8, "not \"alltoall\"" },
    { HEAD "[table allreduce]\n", 4, 17, "expected nodes=N" },
    { HEAD "[table allreduce ppn=8 nodes=2]\n", 4, 18, "expected nodes=N" },
    { HEAD "[table allreduce nodes=0 ppn=8]\n", 4, 24, "nodes takes a number from 1 to" },
    { HEAD "[table allreduce nodes=2]\n", 4, 25, "expected ppn=N" },
    { HEAD "[table allreduce nodes=2 ppn=]\n", 4, 30, "ppn takes a number" },
    { HEAD "[table allreduce nodes=2 ppn=8 x]\n", 4, 32, "nothing may follow ppn" },
    { TABLE "[table AllReduce nodes=2 ppn=8]\n", 5, 1, "a second table for allreduce nodes=2 ppn" },
    { TABLE "0 64K ring ll\n", 5, 14, "a row has five fields" },
    { TABLE "0 64K ring ll 0 0\n", 5, 17, "after channels a row takes over=" },
    { TABLE "x 64K ring ll 0\n", 5, 1, "bytes_lo takes a size such as 64K, not \"x\"" },
    { TABLE "max 64K ring ll 0\n", 5, 1, "bytes_lo takes a size" },
    { TABLE "0 64KK ring ll 0\n", 5, 3, "bytes_hi takes a size such as 64K or max" },
    { TABLE "0 64K rings ll 0\n", 5, 7, "algo takes tree|ring|collnetdirect|collnetchain" },
    { TABLE "0 64K ring ll64 0\n", 5, 12, "proto takes ll|ll128|simple, not \"ll64\"" },
    { TABLE "0 64K ring ll 65\n", 5, 15, "channels takes a number from 0 to 64" },
    { TABLE "0 64K ring ll -1\n", 5, 15, "channels takes a number" },
    { TABLE "64K 64K ring ll 0\n", 5, 1, "bytes_hi must be greater than bytes_lo" },
    { TABLE "64K 1K ring ll 0\n", 5, 1, "bytes_hi must be greater than bytes_lo" },
    { TABLE "0 64K ring ll 0\n63K 1M ring ll 0\n", 6, 1, "overlaps the one before it" },
    { TABLE "64K 1M ring ll 0\n0 64K ring ll 0\n", 6, 1, "overlaps the one before it" },
    { TABLE "0 max ring ll 0\n64K max ring ll 0\n", 6, 1, "overlaps the one before it" },
    { TABLE "flows = 8\n", 5, 10, "a row has five fields" },
  };
  ASSERT_ALL_BAD(cases);
}

UNIT_TEST(bad_ends_of_rows_are_placed) {
  static const struct bad_case cases[] = {
    { TABLE "0 64K ring ll 0 chunk=64K\n", 5, 17, "after channels a row takes over=, default_us=" },
    { TABLE "0 64K ring ll 0 over=a over=b\n", 5, 22, "over takes a cell" },
    { TABLE "0 64K ring ll 0 over=tree/ll default_us=1 choice_us=1 noise_pct=1 noise_pct=1\n", 5,
      67, "nothing may follow noise_pct" },
    { TABLE "0 64K ring ll 0 over=tree\n", 5, 22, "over takes a cell such as tree/ll" },
    { TABLE "0 64K ring ll 0 over=tree/ll\n", 5, 29, "in this order" },
    { TABLE "0 64K ring ll 0 noise_pct=1\n", 5, 17, "in this order" },
    { TABLE "0 64K ring ll 0 over=tree/ll default_us=1.2345 choice_us=1\n", 5, 41,
      "default_us takes a number from 0 to 1000000000 with up to three decimals" },
    { TABLE "0 64K ring ll 0 over=tree/ll default_us=1 choice_us=0\n", 5, 53, "is more than 0" },
  };
  ASSERT_ALL_BAD(cases);
}

UNIT_TEST(too_many_tables_are_refused) {
  struct profile profile;
  struct profile_error error;
  size_t bytes;
  char *text = NULL;
  FILE *to = open_memstream(&text, &bytes);
  fputs(HEAD, to);
  for (int i = 1; i <= 1025; i++) {
    fprintf(to, "[table reduce nodes=%d ppn=1]\n", i);
  }
  fclose(to);
  assert_int_equal(profile_parse(text, bytes, &profile, &error), -EINVAL);
  assert_int_equal(error.line, 3 + 1025);
  assert_non_null(strstr(error.text, "more than 1024 tables"));
  free(text);
}

UNIT_TEST(nul_bytes_are_refused) {
  static const char text[] = "schema = 1\n[meta]\nid = a\0b\n";
  struct profile profile;
  struct profile_error error;
  assert_int_equal(profile_parse(text, sizeof text - 1, &profile, &error), -EINVAL);
  assert_int_equal(error.line, 3);
  assert_int_equal(error.column, 7);
  assert_non_null(strstr(error.text, "byte 0x00 is not text"));
}

UNIT_MAIN(NULL, NULL)
