/* SPDX-License-Identifier: Apache-2.0 */
/* first_hello: the hello of a first lane, for tests that speak the handshake by hand.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef TESTS_LIB_FIRST_HELLO_H
#define TESTS_LIB_FIRST_HELLO_H

#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handle.h"

/* To the listener of the handle, and the keys that prove it. job: the secret of the job, or NULL.
 */
void first_hello(const struct handle *handle, const uint8_t *job, struct hello *hello,
                 struct auth_keys *keys);

#endif
