/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of NCCL's environment plugin: section [env] of a profile without setenv. */
#include "net_plugin/abi/env_abi.h"
#include "net_plugin/abi/shims.h"
#include "net_plugin/plugin/profile_use.h"

static enum nccl_result init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix) {
  (void)suffix;
  profile_use_answer(major * 10000 + minor * 100 + patch);
  return NCCL_SUCCESS;
}

/* The net plugin gets the same logger later, and needs none before. */
static enum nccl_result init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                                nccl_logger_fn *logger) {
  (void)logger;
  return init_v1(major, minor, patch, suffix);
}

/* At the process's exit; other threads may still ask. */
static enum nccl_result finalize(void) {
  return NCCL_SUCCESS;
}

const struct env_plugin_v1 ncclEnvPlugin_v1 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v1,
  .finalize = finalize,
  .getEnv = profile_use_variable,
};

const struct env_plugin_v2 ncclEnvPlugin_v2 __attribute__((visibility("default"))) = {
  .name = SHIMS_NAME,
  .init = init_v2,
  .finalize = finalize,
  .getEnv = profile_use_variable,
};
