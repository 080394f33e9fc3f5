/* SPDX-License-Identifier: Apache-2.0 */
/* sample_file: one measurement of one collective, and files of them.
 * Owns: the samples of a struct sample_file, until sample_file_free.  Threads: any, on different
 * structs.  Blocks: on the file.  Fails: -EINVAL for a line that is no sample, with file, line and
 * what is wrong; -ENOMEM; errors of the file system. After a failure the struct is empty.
 *
 * A file is text, one JSON object per line, only ever appended to. Several writers and several runs
 * may share one; order does not matter. What is added together is written at once: a killed process
 * loses one launch.
 *
 *   {"schema":1,"coll":"allreduce","bytes":4194304,"nodes":4,"ppn":8,"algo":"ring",
 *    "proto":"simple","channels":8,"default":false,"n":20,"median_us":812.40,"mad_us":9.10,
 *    "time":1785578102,"nccl":22809,"run":"1785578100-3f2a","topology":"0d5fc02a91e7"}
 *
 * (one line in the file). A key that is not needed for what a line says may be left out, except
 * coll, bytes, nodes, ppn, algo, proto, n and median_us; keys that are not known are ignored. */
#ifndef TUNER_PLUGIN_MODEL_SAMPLE_FILE_H
#define TUNER_PLUGIN_MODEL_SAMPLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/profile.h"
#include "common/topology.h"

enum { SAMPLE_SCHEMA = 1, SAMPLE_WORD_MAX = 40, SAMPLE_LINE_MAX = 1024 };

struct sample {
  enum profile_collective collective; /* "coll", in the words of profiles */
  uint64_t bytes;           /* as NCCL counts for its tuner: nRanks * count * size for allgather and
                               reducescatter; the size column of nccl-tests */
  uint32_t nodes;           /* of the communicator */
  uint32_t ppn;             /* ranks on each of them */
  struct profile_cell cell; /* what ran, also where NCCL chose it, with the channels asked for */
  bool is_default;          /* "default": nothing was asked for, NCCL chose all of it */
  uint32_t n;               /* calls behind the times, warm-up left out */
  double median_us;         /* per call; of each call the slowest rank's time where that is known */
  double mad_us;            /* median absolute deviation from the median; 0: not known */
  uint64_t time;            /* seconds since 1970, when the block ended; 0: not known */
  int nccl;                 /* as ncclGetVersion counts; 0: not known */
  /* Empty: not known. Only letters, digits and . _ - */
  char run[SAMPLE_WORD_MAX];      /* one round: only samples of one round are paired */
  char topology[TOPOLOGY_ID_MAX]; /* fingerprint of all ranks' machines, common/topology.h */
};

/* The line, with its newline; returns its length, or 0 if it does not fit or a word is none. */
size_t sample_format(const struct sample *sample, char *text, size_t text_bytes);

struct sample_file {
  struct sample *samples;
  size_t count;
};

/* Adds the samples of the file to `out`, which is zeroed or the result of earlier reads. Empty
 * lines and an incomplete last line are skipped. */
int sample_file_read(const char *path, struct sample_file *out, struct profile_error *error);

/* Makes the file if there is none, and prepares its end: an incomplete last line, whose writer was
 * interrupted, is removed. -EINVAL: its last line is no sample; the file stays as it is. */
int sample_file_mend(const char *path);
/* Writes them to the end of the file. */
int sample_file_append(const char *path, const struct sample *samples, size_t count);

/* Adds one; -ENOMEM leaves the others. */
int sample_file_add(struct sample_file *file, const struct sample *sample);

void sample_file_free(struct sample_file *file);

#endif
