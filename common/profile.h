/* SPDX-License-Identifier: Apache-2.0 */
/* profile: a tuning profile: which machines it fits, network settings, and measured choices.
 * Owns: the tables of a struct profile, until profile_free.  Threads: any, on different profiles.
 * Blocks: profile_read and profile_write, on the file.  Fails: -EINVAL for bad text, with file,
 * place (line and column, or "tables[0].rows[2].algo") and what is accepted; -EFBIG over 1 MiB;
 * -ENOMEM; errors of the file system. A profile that failed to parse is empty and owns nothing.
 *
 * The text is one JSON object. Only schema and id are needed; none may come twice, and a key that
 * is not known is an error.
 *
 *   {"schema": 2,
 *    "id": "aws-p4d",            letters, digits and . _ -
 *    "created": "2026-08-01",
 *    "source": "calibrated on 4 x p4d.24xlarge in one placement group",
 *    "nccl_min": 21901,          releases that the tables hold for, both included, as
 *    "nccl_max": 23099,          ncclGetVersion counts: 2.19.1 and all of 2.30
 *    "match": {                  all that are given must fit; without any, the profile is used
 *      "cloud": "aws",           only where STRATUS_PROFILE names it
 *      "instance_type": "p4d.*, p4de.24xlarge",   patterns with * and ?, any of them
 *      "topology": "0d5fc02a91e7"},               a fingerprint, as printed by stratus doctor
 *    "net": {
 *      "flows": 8,               flows per connection and NIC
 *      "chunk_bytes": 131072,    these are defaults of the STRATUS_ variables of the same names
 *      "speed_mbps": 100000},    of one NIC
 *    "tables": [
 *      {"coll": "allreduce", "nodes": 4, "ppn": 8, "rows": [
 *        {"bytes_lo": 65536, "bytes_hi": 1048576, "algo": "tree", "proto": "ll128"},
 *        {"bytes_lo": 1048576, "algo": "ring", "proto": "simple", "channels": 8,
 *         "over_algo": "tree", "over_proto": "simple", "default_ns": 812400, "choice_ns": 700000,
 *         "noise_permille": 21}]}],
 *    "notes": ...}               anything: for people
 *
 * A row matches bytes_lo <= bytes < bytes_hi, bytes as NCCL counts them for its tuner
 * (nRanks * count * size for AllGather and ReduceScatter, else count * size; enqueue.h:39 at
 * v2.28.9); without bytes_hi all from bytes_lo on. Rows ascend and do not overlap; without a row,
 * NCCL chooses.
 *
 * A row may have its measurement: the cell that NCCL had chosen, the times per call of both at the
 * size with the smallest gain, and their noise, which may be missing. Such a row matches only while
 * NCCL would choose that cell, and while its gain exceeds noise and a margin
 * (tuner_plugin/decide/decide.h). */
#ifndef COMMON_PROFILE_H
#define COMMON_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/topology_id.h"

enum {
  PROFILE_SCHEMA = 2,
  PROFILE_FILE_MAX = 1 << 20,
  PROFILE_ID_MAX = 64,
  PROFILE_NAME_MAX = 16, /* TCP_CA_NAME_MAX of the kernel */
  PROFILE_DATE_MAX = 11,
  PROFILE_TEXT_MAX = 256,
  PROFILE_PATH_MAX = 4096,
  PROFILE_NODES_MAX = 1 << 20,  /* nodes=, ppn= */
  PROFILE_CHANNELS_MAX = 64,    /* MAXCHANNELS, src/include/device.h of NCCL */
  PROFILE_DECISION_VERSION = 2, /* of the code that makes a choice of a profile and a call; goes up
                                   whenever the same profile may lead to another choice */
};

/* The numbers are NCCL's own: ncclFunc_t, NCCL_ALGO_*, NCCL_PROTO_* (nccl_tuner.h:27-43, the same
 * since 2.19). */
enum profile_collective {
  PROFILE_BROADCAST,
  PROFILE_REDUCE,
  PROFILE_ALLGATHER,
  PROFILE_REDUCESCATTER,
  PROFILE_ALLREDUCE,
  PROFILE_COLLECTIVE_COUNT
};
enum profile_algorithm {
  PROFILE_TREE,
  PROFILE_RING,
  PROFILE_COLLNET_DIRECT,
  PROFILE_COLLNET_CHAIN,
  PROFILE_NVLS,
  PROFILE_NVLS_TREE,
  PROFILE_PAT,
  PROFILE_ALGORITHM_COUNT
};
enum profile_protocol { PROFILE_LL, PROFILE_LL128, PROFILE_SIMPLE, PROFILE_PROTOCOL_COUNT };

/* Lower-case names as the text has them; all of them for quantity_find_word. */
#define PROFILE_COLLECTIVE_WORDS "broadcast|reduce|allgather|reducescatter|allreduce"
#define PROFILE_ALGORITHM_WORDS "tree|ring|collnetdirect|collnetchain|nvls|nvlstree|pat"
#define PROFILE_PROTOCOL_WORDS "ll|ll128|simple"
const char *profile_collective_name(enum profile_collective collective);
const char *profile_algorithm_name(enum profile_algorithm algorithm);
const char *profile_protocol_name(enum profile_protocol protocol);

/* A way to run a collective. */
struct profile_cell {
  enum profile_algorithm algorithm;
  enum profile_protocol protocol;
  uint32_t channels; /* at most; 0: NCCL's own number */
};

struct profile_row {
  uint64_t bytes_lo; /* first size */
  uint64_t bytes_hi; /* first size after the row; UINT64_MAX: there is none */
  struct profile_cell cell;
  bool is_measured;         /* the fields below are */
  struct profile_cell over; /* what NCCL chose */
  uint64_t default_ns;
  uint64_t choice_ns;
  uint32_t noise_permille; /* of the difference of the two */
};

struct profile_table {
  enum profile_collective collective;
  uint32_t nodes;
  uint32_t ppn;             /* ranks per node */
  struct profile_row *rows; /* ascending, without overlap */
  size_t row_count;
};

struct profile_meta {
  char id[PROFILE_ID_MAX];
  char created[PROFILE_DATE_MAX];
  char source[PROFILE_TEXT_MAX];
  int nccl_min, nccl_max; /* as ncclGetVersion counts: 2.21.5 is 22105; 0: no limit */
};

/* Conditions on the machine; empty: none. Instance types are patterns separated by commas. */
struct profile_fit {
  char cloud[PROFILE_TEXT_MAX];
  char instance_type[PROFILE_TEXT_MAX];
  char topology[TOPOLOGY_ID_MAX];
};

/* 0: not given. */
struct profile_net {
  uint32_t flows;
  uint32_t chunk_bytes;
  uint32_t speed_mbps;
};

struct profile {
  struct profile_meta meta;
  struct profile_fit fit; /* "match" */
  struct profile_net net;
  struct profile_table *tables; /* no two for the same collective, nodes and ppn */
  size_t table_count;
};

/* "path:line:column: ...", without what is not known: no path where text was parsed. */
struct profile_error {
  char text[PROFILE_PATH_MAX + 600];
};

int profile_read(const char *path, struct profile *out, struct profile_error *error);
int profile_parse(const char *text, size_t text_bytes, struct profile *out,
                  struct profile_error *error);
void profile_free(struct profile *profile);

/* Writes the canonical text: it parses to the same profile again. Negative errno if the stream
 * failed. */
int profile_write(const struct profile *profile, FILE *to);

/* First 8 bytes of the SHA-256 of the canonical text, so independent of spacing and comments. 0
 * without memory. */
uint64_t profile_hash(const struct profile *profile);

/* The same over what must be equal on all ranks, or they hang: the tables. 0 if there are none. */
uint64_t profile_decision_hash(const struct profile *profile);

/* The table for exactly this key, or NULL. */
const struct profile_table *profile_find_table(const struct profile *profile,
                                               enum profile_collective collective, uint32_t nodes,
                                               uint32_t ppn);
/* The row that matches this size, or NULL, also if table is NULL. */
const struct profile_row *profile_find_row(const struct profile_table *table, uint64_t bytes);

#endif
