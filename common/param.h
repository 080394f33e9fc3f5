/* SPDX-License-Identifier: Apache-2.0 */
/* param: the STRATUS_* environment variables, parsed and checked once.
 * Owns: the parsed values; strings live until the next param_load.  Threads: getters any.
 * Blocks: the first getter reads the environment.  Fails: cannot; a bad value is one WARN that
 * names the variable, the value, what is accepted, and the default, which is kept; for a variable
 * with duty PROTECTS it is a refusal instead.
 *
 * Set the log sink before the first getter, so that the warnings reach the user. The environment
 * is read late enough to see what NCCL took over from its configuration files. */
#ifndef COMMON_PARAM_H
#define COMMON_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/param_table.h"

enum param_id {
#define PARAM_ID(name, type, default_text, accepted, unit, plugin, duty, help) PARAM_##name,
  PARAM_TABLE(PARAM_ID)
#undef PARAM_ID
      PARAM_COUNT
};

/* Values of param_enum, in the order of the words in the table. */
enum param_compress { PARAM_COMPRESS_OFF, PARAM_COMPRESS_AUTO, PARAM_COMPRESS_ON };
enum param_encrypt { PARAM_ENCRYPT_OFF, PARAM_ENCRYPT_ON };
enum param_rdma { PARAM_RDMA_AUTO, PARAM_RDMA_ON, PARAM_RDMA_OFF };
enum param_collnet {
  PARAM_COLLNET_OFF,
  PARAM_COLLNET_FULL,
  PARAM_COLLNET_BF16,
  PARAM_COLLNET_FP16
};
enum param_progress { PARAM_PROGRESS_AUTO, PARAM_PROGRESS_INLINE, PARAM_PROGRESS_THREAD };

/* Each getter asserts that the parameter has its type; param_enum returns the word's index. */
bool param_bool(enum param_id id);
int64_t param_int(enum param_id id);
uint64_t param_size(enum param_id id);        /* bytes */
uint64_t param_duration_ns(enum param_id id); /* nanoseconds */
int param_enum(enum param_id id);
const char *param_string(enum param_id id); /* never NULL; empty if not set */

/* True if the user set an accepted value. */
bool param_is_set(enum param_id id);

/* Why connections are refused, for the user; NULL: they are not. A variable with duty PROTECTS has
 * a bad or empty value, or an unknown name resembles one. Valid until the next param_load. */
const char *param_refusal(void);

/* "STRATUS_FLOWS" for PARAM_FLOWS. */
const char *param_name(enum param_id id);

/* Replaces all values by those of `environment` ("NAME=value", NULL at the end). For tests; no
 * other thread may use a getter meanwhile. */
void param_load(char *const *environment);

/* One WARN for each STRATUS_* name in `environment` that is not in the table, with the nearest one
 * that is, or the advice to unset it; except those behind param_refusal. Names that start with
 * STRATUS_TEST_ are for tests and are ignored. Returns the number of warnings. */
int param_warn_unknown(char *const *environment);

/* Name, value in force and help of each, for people. */
void param_print(FILE *to);

#endif
