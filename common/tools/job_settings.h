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
 * and take their own transport for the next; 1 was the default before.
 *
 * What the user has set, in the environment or in NCCL's configuration files, is never changed.
 * Where it keeps NCCL from using stratus nothing is set at all: a job that needs a vendor's plugin
 * would not start, as NCCL looks for that one in libnccl-net.so only while NCCL_NET_PLUGIN is not
 * set, and a tuner that comes with the plugin only while NCCL_TUNER_PLUGIN leads nowhere.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.  Fails: cannot. */
#ifndef COMMON_TOOLS_JOB_SETTINGS_H
#define COMMON_TOOLS_JOB_SETTINGS_H

#include <stdbool.h>

#include "common/nccl_conf.h"

enum job_variable {
  JOB_LD_LIBRARY_PATH,
  JOB_NET_PLUGIN,
  JOB_TUNER_PLUGIN,
  JOB_REF_COUNT,
  JOB_VARIABLE_COUNT
};

struct job_setting {
  const char *name;
  char *value;                     /* for the job; NULL: the user's stays */
  struct nccl_conf_setting theirs; /* no value: none */
};

struct job_settings {
  struct job_setting settings[JOB_VARIABLE_COUNT];
  char *why_not_net;   /* the user's setting that keeps stratus from being used; NULL: none */
  char *why_not_tuner; /* the same for the tuner alone */
  char *doubt;         /* what may keep it, which this host cannot tell; NULL: nothing */
};

/* `directory` has the plugins; nccl_conf_load was called. Memory is the process's until it ends. */
void job_settings_make(const char *directory, struct job_settings *settings);

/* Why a job with this value of NCCL_NET cannot use stratus; NULL: it can. */
char *job_settings_why_not_net(const struct nccl_conf_setting *nccl_net);

/* The same for a value of NCCL_NET_PLUGIN or NCCL_TUNER_PLUGIN. */
char *job_settings_why_not_plugin(const char *name, const struct nccl_conf_setting *setting);

#endif
