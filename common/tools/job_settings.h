/* SPDX-License-Identifier: Apache-2.0 */
/* job_settings: the variables with which a job loads both plugins, and what the user has set
 * instead.
 *
 * NCCL gets the plugins
 *   by name      where the loader knows them without LD_LIBRARY_PATH: links of a .deb or .rpm
 *   by path      where each NCCL that this host shows takes one: launchers such as DeepSpeed's and
 *                Ray's pass NCCL_* on, and drop LD_LIBRARY_PATH. 2.21.5 and later do, but for
 *                2.27.3; 2.19 and 2.20 look for libnccl-net-<value>.so only (plugin_name.h)
 *   by name      else, and LD_LIBRARY_PATH must lead there
 *
 * LD_LIBRARY_PATH is set in each case, for what loads another NCCL than this host shows.
 *
 * What the user has set, in the environment or in NCCL's configuration files, is never changed.
 * Where it keeps NCCL from using stratus nothing is set at all: a job that needs a vendor's plugin
 * would not start, as NCCL looks for that one in libnccl-net.so only while NCCL_NET_PLUGIN is not
 * set, and a tuner that comes with the plugin only while NCCL_TUNER_PLUGIN leads nowhere.
 *
 * Owns: nothing.  Threads: the main thread.  Blocks: on the file system.
 * Fails: cannot. */
#ifndef COMMON_TOOLS_JOB_SETTINGS_H
#define COMMON_TOOLS_JOB_SETTINGS_H

#include <stdbool.h>

#include "common/nccl_conf.h"

enum job_variable {
  JOB_LD_LIBRARY_PATH,
  JOB_NET_PLUGIN,
  JOB_TUNER_PLUGIN,
  JOB_NET,        /* set by is_strict, and to overrule */
  JOB_ENV_PLUGIN, /* set only to overrule what the user or the image has set */
  JOB_VARIABLE_COUNT
};
enum job_problem {
  JOB_FINE,
  JOB_OBSTACLE, /* keeps stratus from being used */
  JOB_NO_TUNER, /* the same for the tuner alone */
  JOB_DOUBT     /* may keep it, which this host cannot tell */
};

struct job_setting {
  const char *name;
  char *value;                     /* for the job; NULL: the user's stays */
  struct nccl_conf_setting theirs; /* no value: none */
  enum job_problem problem;        /* that it is */
  char *text;                      /* of it: one line, with the setting and its origin */
};

struct job_settings {
  struct job_setting settings[JOB_VARIABLE_COUNT];
  bool is_obstructed;      /* by one of them that is not overruled: stratus is not used */
  bool needs_library_path; /* by name, and the loader knows none */
};

/* What is known of the job. */
struct job_request {
  const char *directory; /* of the plugins */
  bool is_known;         /* plugin_file_is_known_to_loader */
  bool is_file;          /* all settings, for a file of NCCL's, which sets no LD_LIBRARY_PATH */
  const char *program;   /* that it runs; NULL: not known */
  bool is_override;      /* problems are overruled, and told all the same */
  bool is_strict;        /* NCCL is to end a rank that does not get stratus */
};

/* nccl_conf_load was called. Memory is the process's until it ends. */
void job_settings_make(const struct job_request *request, struct job_settings *settings);

/* Says each problem, or, where stratus is not used, those that keep it from that: what follows from
 * it, or `instead` (NULL: nothing else), then the setting. */
void job_settings_tell(const struct job_settings *settings, const char *instead);

#endif
