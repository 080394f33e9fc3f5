/* SPDX-License-Identifier: Apache-2.0 */
/* env_plugin: what NCCL's env plugin answers in a variable's place. NCCL 2.28.7 and later asks the
 * library that NCCL_ENV_PLUGIN names, or libnccl-env.so, for each variable (src/plugin/env.cc).
 * Owns: nothing.  Threads: the main thread.  Blocks: a process of its own asks, which is waited for
 * as long as ENV_PLUGIN_ANSWER_MS.  Fails: false; the plugin's faults stay in that process. */
#ifndef COMMON_TOOLS_ENV_PLUGIN_H
#define COMMON_TOOLS_ENV_PLUGIN_H

#include <stdbool.h>

#include "common/nccl_conf.h"

struct env_plugin_answer {
  char file[PATH_MAX];
  char value[NCCL_CONF_VALUE_MAX];
};

/* Whether there is an env plugin, not ours, that answers for `name` with another value than
 * `value`, which the job will have in its environment; NULL: it has none. `plugin` is
 * NCCL_ENV_PLUGIN's. */
bool env_plugin_changes(const char *plugin, const char *name, const char *value,
                        struct env_plugin_answer *answer);

#endif
