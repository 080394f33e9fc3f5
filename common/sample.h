/* SPDX-License-Identifier: Apache-2.0 */
/* sample: one measurement of one collective, as a line of samples.jsonl has it.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: sample_format, when the text does not fit; nothing is half written.
 *
 * A file of samples is text, one JSON object per line, only ever appended to. Several writers and
 * several runs may share one file; order does not matter. Read by tuner_plugin/model/sample_file.h.
 *
 *   {"schema":1,"coll":"allreduce","bytes":4194304,"nodes":4,"ppn":8,"algo":"ring",
 *    "proto":"simple","channels":8,"chunk":0,"default":false,"in_place":false,"n":20,
 *    "median_us":812.40,"mad_us":9.10,"p99_us":870.00,"order":17,"time":1785578102,
 *    "nccl":22809,"plugin":"0.4.0","env":"default","run":"1785578100-3f2a","hosts":"9f86d081",
 *    "topology":"0d5fc02a91e7"}
 *
 * (one line in the file). A key that is not needed for what a line says may be left out, except
 * coll, bytes, nodes, ppn, algo, proto, n and median_us; keys that are not known are ignored. */
#ifndef COMMON_SAMPLE_H
#define COMMON_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"
#include "common/topology.h"

enum { SAMPLE_SCHEMA = 1, SAMPLE_WORD_MAX = 40, SAMPLE_LINE_MAX = 1024 };

struct sample {
  enum profile_collective collective; /* "coll", in the words of profiles */
  uint64_t bytes; /* as NCCL counts for its tuner: nRanks * count * size for allgather and
                     reducescatter; the size column of nccl-tests */
  uint32_t nodes; /* of the communicator */
  uint32_t ppn;   /* ranks on each of them */
  enum profile_algorithm algorithm; /* what ran, also where NCCL chose it */
  enum profile_protocol protocol;
  uint32_t channels; /* most channels that were asked for; 0: NCCL's own number */
  uint32_t chunk;    /* bytes that were asked for through getChunkSize; 0: NCCL's own */
  bool is_default;   /* "default": nothing was asked for, NCCL chose all of it */
  bool is_in_place;
  uint32_t n;       /* calls behind the times, warm-up left out */
  double median_us; /* per call; of each call the slowest rank's time where that is known */
  double mad_us;    /* median absolute deviation from the median; 0: not known */
  double p99_us;    /* 0: not known */
  uint64_t order;   /* place of the block in its run, from 0: shows drift */
  uint64_t time;    /* seconds since 1970, when the block ended; 0: not known */
  int nccl;         /* as ncclGetVersion counts; 0: not known */
  /* Empty: not known. Only letters, digits and . _ - in all of them. */
  char plugin[SAMPLE_WORD_MAX];   /* release of stratus */
  char env[SAMPLE_WORD_MAX];      /* name of the set of variables that the run had */
  char run[SAMPLE_WORD_MAX];      /* one launch: only samples of one launch are paired */
  char hosts[SAMPLE_WORD_MAX];    /* hash of the sorted list of hosts */
  char topology[TOPOLOGY_ID_MAX]; /* fingerprint of all ranks' machines, common/topology.h */
};

/* The line, with its newline; returns its length, or 0 if it does not fit or a word is none. */
size_t sample_format(const struct sample *sample, char *text, size_t text_bytes);

/* Letters, digits and . _ - only, and short enough. Empty is a word. */
bool sample_is_word(const char *text);

#endif
