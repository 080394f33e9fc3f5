/* SPDX-License-Identifier: Apache-2.0 */
/* job_settings: the variables with which a job loads both plugins, and what the user has set
 * instead.
 *
 * NCCL gets the plugins by name, and LD_LIBRARY_PATH leads to them: a path in NCCL_NET_PLUGIN or
 * NCCL_TUNER_PLUGIN is not taken by all releases (2.19 and 2.20 look for libnccl-net-<value>.so
 * only, src/net.cc:346 at v2.20.5-1; 2.27.3 for libnccl-net-<value>.so unless the value begins with
 * "lib", src/plugin/plugin_open.cc:65).
 *
 * NCCL_NET_PLUGIN_REF_COUNT=1: 2.28.3 to 2.29.7 forget the plugin's name with the last communicator
 * and take their own transport for the next; 1 was the default before (docs/decisions.md).
 *
 * What the user has set, in the environment or in NCCL's configuration files, is never changed.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.  Fails: cannot. */
#ifndef COMMON_TOOLS_JOB_SETTINGS_H
#define COMMON_TOOLS_JOB_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#include "common/tools/nccl_conf.h"

enum job_variable {
  JOB_LD_LIBRARY_PATH,
  JOB_NET_PLUGIN,
  JOB_TUNER_PLUGIN,
  JOB_REF_COUNT,
  JOB_VARIABLE_COUNT
};

struct job_setting {
  const char *name;
  char *value;     /* for the job; NULL: the user's stays */
  char *theirs;    /* NULL: none */
  char *set_where; /* "the environment", or a file */
};

struct job_settings {
  struct job_setting settings[JOB_VARIABLE_COUNT];
  char *why_not_net;   /* the user's setting that keeps stratus from being used; NULL: none */
  char *why_not_tuner; /* the same for the tuner alone */
};

/* `directory` has the plugins. Memory is the process's until it ends. */
void job_settings_make(const char *directory, struct job_settings *settings);

/* True for a value of NCCL_NET_PLUGIN that names stratus, also as one of a list. */
bool job_settings_is_stratus(const char *net_plugin);

#endif
