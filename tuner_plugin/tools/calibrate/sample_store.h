/* SPDX-License-Identifier: Apache-2.0 */
/* sample_store: a file of samples that a campaign adds to, and its earlier contents.
 * Owns: the file and the samples of a struct sample_store, until sample_store_close.  Threads: the
 * main thread.  Blocks: on the file.  Fails: with a message and CLI_FAILED.
 *
 * The samples of a launch are written together when it has ended: a killed process loses one
 * launch. An incomplete last line is removed before more is written. */
#ifndef TUNER_PLUGIN_TOOLS_CALIBRATE_SAMPLE_STORE_H
#define TUNER_PLUGIN_TOOLS_CALIBRATE_SAMPLE_STORE_H

#include "tuner_plugin/model/sample_file.h"

struct sample_store {
  const char *path;
  int file;
  struct sample_file samples; /* also those that were added */
  size_t written;             /* number of them that are in the file */
};

/* Makes the file if there is none. */
int sample_store_open(struct sample_store *store, const char *path);
int sample_store_add(struct sample_store *store, const struct sample *sample);
/* Writes what was added. */
int sample_store_flush(struct sample_store *store);
void sample_store_close(struct sample_store *store);

#endif
