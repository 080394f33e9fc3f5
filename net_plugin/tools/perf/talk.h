/* SPDX-License-Identifier: Apache-2.0 */
/* talk: the control connection of `stratus-net perf`: JSON objects in both directions, each with
 * its length before it, after a greeting that names tool and version. Owns: the socket, until
 * talk_close; messages are the receiver's (json_decref). Threads: the main thread. Blocks:
 * talk_hear up to the patience given; talk_poll never; talk_say if the other side does not read.
 * Fails: with a message and CLI_FAILED; when the other side gave up, its reason is shown. */
#ifndef NET_PLUGIN_TOOLS_PERF_TALK_H
#define NET_PLUGIN_TOOLS_PERF_TALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { TALK_MESSAGE_MAX = 4 << 20 };

struct talk {
  int fd;
  const char *peer; /* "the server" or "the client" */
  uint8_t *bytes;   /* of the message that is coming in: 4 of length, then the text */
  size_t held;
  json_t *kept; /* heard, but meant for later; NULL: none */
};

/* Takes the socket over and exchanges greetings. */
int talk_open(struct talk *talk, int fd, const char *peer);
void talk_close(struct talk *talk);

/* Takes the reference to `message`, which may be NULL: out of memory. */
int talk_say(struct talk *talk, json_t *message);

/* The next message, which must have this member. */
int talk_hear(struct talk *talk, const char *member, uint64_t patience_ns, json_t **message);

/* *message is NULL if none has come, or one is kept. */
int talk_poll(struct talk *talk, json_t **message);

/* For the next talk_hear: the other side is already a step further. */
void talk_keep(struct talk *talk, json_t *message);

/* Both sides have come to the step of this name. */
int talk_meet(struct talk *talk, const char *step, uint64_t patience_ns);

/* Tells the other side, as well as it goes, why this one ends. */
void talk_give_up(struct talk *talk, const char *reason);

#endif
