/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand: for tests that speak the handshake by hand.
 * Owns: nothing.  Threads: any.  Blocks: say, as send does.  Fails: the test, at a peer that went.
 */
#ifndef TESTS_LIB_BY_HAND_H
#define TESTS_LIB_BY_HAND_H

#include <stdbool.h>
#include <stddef.h>

#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handle.h"

/* The hello of a first lane, to the listener of the handle, and the keys that prove it. job: the
 * secret of the job, or NULL. */
void by_hand_hello(const struct handle *handle, const uint8_t *job, struct hello *hello,
                   struct auth_keys *keys);

/* Slowly: in pieces that end anywhere. */
void by_hand_say(int fd, const uint8_t *bytes, size_t count, bool is_slow);

#endif
