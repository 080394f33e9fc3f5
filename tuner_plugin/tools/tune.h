/* SPDX-License-Identifier: Apache-2.0 */
/* tune: what the subcommands about profiles share.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: on files.  Fails: with a message on stderr and CLI_FAILED. */
#ifndef TUNER_PLUGIN_TOOLS_TUNE_H
#define TUNER_PLUGIN_TOOLS_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/cli.h"
#include "common/profile.h"
#include "common/quantity.h"

/* Reads the named profile or, for NULL, the one that the plugins would find. `path` receives the
 * file's path. Returns CLI_OK, or CLI_FAILED after a message; the caller frees the profile. */
int tune_load(const char *name, struct profile *profile, char path[PROFILE_PATH_MAX]);

/* Writes it to the file, or, for NULL, to stdout. CLI_OK, or CLI_FAILED after a message. */
int tune_write(const struct profile *profile, const char *path);

/* "64K to under 4M", "4M and more". */
enum { TUNE_RANGE_TEXT_MAX = 64 };
const char *tune_format_range(uint64_t bytes_lo, uint64_t bytes_hi, char text[TUNE_RANGE_TEXT_MAX]);

/* "at most 8 channels", "NCCL's number of channels". */
enum { TUNE_CHANNELS_TEXT_MAX = 40 };
const char *tune_format_channels(uint32_t channels, char text[TUNE_CHANNELS_TEXT_MAX]);

/* 16 hexadecimal digits, as in the plugins' log lines. */
enum { TUNE_HASH_TEXT_MAX = 17 };
const char *tune_format_hash(const struct profile *profile, char text[TUNE_HASH_TEXT_MAX]);

/* "this machine's topology", or that it is another one; empty if the profile requires none. */
enum { TUNE_TOPOLOGY_TEXT_MAX = 80 };
const char *tune_format_topology(const struct profile *profile, char text[TUNE_TOPOLOGY_TEXT_MAX]);

/* Integer as JSON has it; the open end of a row is null. */
json_t *tune_json_bytes(uint64_t bytes);

/* Prints and frees; returns the exit status. */
int tune_print_json(json_t *value);

#endif
