/* SPDX-License-Identifier: Apache-2.0 */
/* env_abi: NCCL's environment plugin, v1 and v2, as libnccl reads it (src/include/plugin/env/ at
 * v2.28.7-1 and v2.30.7-1). NCCL 2.28 and 2.29 look for v1, 2.30 for v2, then v1, in the library
 * that NCCL_ENV_PLUGIN names, in the first communicator's init and before any other plugin.
 * Owns: nothing.  Threads: NCCL calls getEnv from any, init and finalize once.
 * Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_ABI_ENV_ABI_H
#define NET_PLUGIN_ABI_ENV_ABI_H

#include "net_plugin/abi/net_abi.h"

struct env_plugin_v1 {
  const char *name;
  enum nccl_result (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
  enum nccl_result (*finalize)(void);
  /* NULL: not set. The text stays valid until NCCL asks for the same name again, or finalize. */
  const char *(*getEnv)(const char *name);
};

struct env_plugin_v2 {
  const char *name;
  enum nccl_result (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                           nccl_logger_fn *logger);
  enum nccl_result (*finalize)(void);
  const char *(*getEnv)(const char *name);
};

extern const struct env_plugin_v1 ncclEnvPlugin_v1;
extern const struct env_plugin_v2 ncclEnvPlugin_v2;

#endif
