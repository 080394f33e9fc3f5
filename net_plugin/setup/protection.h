/* SPDX-License-Identifier: Apache-2.0 */
/* protection: whether this side can protect its connections as the user wants it to, and the job
 * secret, from STRATUS_SECRET or the file that STRATUS_SECRET_FILE names.
 * Owns: a digest of the secret; the text itself is not kept.  Threads: any.
 * Blocks: protection_check, on the file of the secret; the others never, also meanwhile.
 * Fails: -EACCES after a LOG_WARN that says what to do. */
#ifndef NET_PLUGIN_SETUP_PROTECTION_H
#define NET_PLUGIN_SETUP_PROTECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/setup/auth.h"

/* Before each listener and connector, and loads the job secret: a file is read again. An error
 * means that something that protects was asked for and is not there, because of a typo, a bad
 * value, or a machine on which it does not work: go no further, so that nothing weaker takes its
 * place. NCCL hands the warning on with its error, also where its log is silent. */
int protection_check(void);

/* Is there a job secret, as it was loaded last? */
bool protection_has_secret(void);
/* The keys of a connection with this identity, made of it and of the secret in the handle. */
void protection_keys(const uint8_t secret[AUTH_SECRET_BYTES], const uint8_t connection[TOKEN_BYTES],
                     struct auth_keys *keys);

#define PROTECTION_TEXT_BYTES 384
/* The warning when a peer has another secret, or one of us has none; returns text. */
const char *protection_secret_differs(const struct conn_params *ours,
                                      const struct conn_params *theirs, const char *their_address,
                                      char text[PROTECTION_TEXT_BYTES]);

#endif
