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

/* A dialling side, over IPv4 or IPv6. Its socket is the test's to close. */
struct by_hand_caller {
  struct hello hello;
  struct auth_keys keys;
  struct sockaddr_storage to;
  const char *from; /* an address of 127.0.0.0/8, or NULL: any */
  bool is_slow;     /* in small pieces */
  int fd;
  struct transcript transcript;
  struct proof proof;
};

/* As by_hand_hello, to the handle's first address. */
struct by_hand_caller by_hand_caller(const struct handle *handle, const uint8_t *job);
void by_hand_dial(struct by_hand_caller *caller);
/* Dials, and says hello. */
void by_hand_greet(struct by_hand_caller *caller);
void by_hand_take_challenge(struct by_hand_caller *caller);
/* With the keys, whatever they are. */
void by_hand_prove(struct by_hand_caller *caller);
/* Whatever reply comes. */
struct reply by_hand_hear_reply(int fd);
/* One that must be genuine. */
struct reply by_hand_reply(const struct by_hand_caller *caller);

/* Slowly: in pieces that end anywhere. */
void by_hand_say(int fd, const void *message, size_t count, bool is_slow);

#endif
