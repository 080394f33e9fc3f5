/* SPDX-License-Identifier: Apache-2.0 */
/* secret: the job secret, from STRATUS_SECRET or the file that STRATUS_SECRET_FILE names.
 * Owns: a digest of it; the text itself is not kept.  Threads: any.  Blocks: secret_load, on the
 * file; the others never, also meanwhile.  Fails: secret_load, negative errno after a LOG_WARN. */
#ifndef NET_PLUGIN_SETUP_SECRET_H
#define NET_PLUGIN_SETUP_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/setup/auth.h"

/* Before each listener and connector (protection.h): a file is read again. An error means that the
 * user wants a secret and there is none: go no further. */
int secret_load(void);
/* The digest of what was loaded last, for auth_keys_derive; NULL if there is no secret. */
const uint8_t *secret_get(uint8_t digest[AUTH_KEY_BYTES]);
#define SECRET_TEXT_BYTES 384
/* The warning when a peer has another secret, or one of us has none; returns text. */
const char *secret_differs_text(const char *peer_host, const char *peer_address, bool is_set_there,
                                char text[SECRET_TEXT_BYTES]);

#endif
