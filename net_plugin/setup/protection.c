/* SPDX-License-Identifier: Apache-2.0 */
/* See protection.h. */
#include "net_plugin/setup/protection.h"

#include <errno.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/setup/secret.h"

int protection_check(void) {
  const char *refusal = param_refusal();
  if (refusal) {
    LOG_WARN("%s", refusal);
    return -EACCES;
  }
  if (param_enum(PARAM_ENCRYPT) == PARAM_ENCRYPT_ON && !lane_crypto_ciphers()) {
    LOG_WARN("STRATUS_ENCRYPT=on, but no cipher works here: libsodium cannot start, for which it "
             "needs getrandom() or /dev/urandom; no connection is made. Make one of them "
             "available to this process, or unset STRATUS_ENCRYPT on every host");
    return -EACCES;
  }
  return secret_load();
}
