/* SPDX-License-Identifier: Apache-2.0 */
/* plan_file: the file of `stratus-tune calibrate --plan`: what to try at which sizes, instead of
 * everything. Owns: the entries of a struct plan_file, until plan_file_free.  Threads: the main
 * thread.  Blocks: on the file.  Fails: with a message and CLI_USAGE or CLI_FAILED.
 *
 * A line for each collective and its sizes, as in a plan: "allreduce:8,64K=ring.ll,tree.simple@1";
 * NCCL's own choice is always tried. Empty lines and those that begin with # are ignored. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_PLAN_FILE_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_PLAN_FILE_H

#include "tuner_plugin/calibrate/plan.h"

struct plan_file {
  struct plan plan;
  char id[9]; /* of what the file says */
};

int plan_file_read(const char *path, struct plan_file *wanted);
void plan_file_free(struct plan_file *wanted);

#endif
