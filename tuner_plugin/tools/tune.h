/* SPDX-License-Identifier: Apache-2.0 */
/* tune: what the subcommands about profiles share.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: on files.  Fails: with a message on stderr and CLI_FAILED. */
#ifndef TUNER_PLUGIN_TOOLS_TUNE_H
#define TUNER_PLUGIN_TOOLS_TUNE_H

#include "common/cli.h"
#include "common/profile.h"
#include "common/quantity.h"

/* Reads the named profile or, for NULL, the one that the plugins would find. `path` receives the
 * file's path. Returns CLI_OK, or CLI_FAILED after a message; the caller frees the profile. */
int tune_load(const char *name, struct profile *profile, char path[PROFILE_PATH_MAX]);

/* Writes it to the file, or, for NULL, to stdout. CLI_OK, or CLI_FAILED after a message. */
int tune_write(const struct profile *profile, const char *path);

#endif
