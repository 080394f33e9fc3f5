/* SPDX-License-Identifier: Apache-2.0 */
/* sample_file: reads files of samples (common/sample.h).
 * Owns: the samples of a struct sample_file, until sample_file_free.  Threads: any, on different
 * structs.  Blocks: on the file.  Fails: -EINVAL for a line that is no sample, with file, line and
 * what is wrong; -ENOMEM; errors of the file system. After a failure the struct is empty. */
#ifndef TUNER_PLUGIN_MODEL_SAMPLE_FILE_H
#define TUNER_PLUGIN_MODEL_SAMPLE_FILE_H

#include <stddef.h>

#include "common/sample.h"

struct sample_file {
  struct sample *samples;
  size_t count;
};

/* Adds the samples of the file to `out`, which is zeroed or the result of earlier reads. Empty
 * lines and an incomplete last line are skipped. */
int sample_file_read(const char *path, struct sample_file *out, struct profile_error *error);

/* Adds one; -ENOMEM leaves the others. */
int sample_file_add(struct sample_file *file, const struct sample *sample);

void sample_file_free(struct sample_file *file);

#endif
