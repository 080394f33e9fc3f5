/* SPDX-License-Identifier: Apache-2.0 */
/* control_channel: the control connection of `stratus-net perf`: JSON objects in both directions,
 * each with its length before it, after a greeting that names tool and version. Owns: the socket,
 * until control_channel_close; messages are the receiver's (json_decref). Threads: the main thread.
 * Blocks: control_channel_receive up to the patience given; control_channel_poll never;
 * control_channel_send if the other side does not read. Fails: with a message and CLI_FAILED; when
 * the other side gave up, its reason is shown. */
#ifndef NET_PLUGIN_TOOLS_PERF_CONTROL_CHANNEL_H
#define NET_PLUGIN_TOOLS_PERF_CONTROL_CHANNEL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTROL_CHANNEL_MESSAGE_MAX = 4 << 20 };

struct control_channel {
  int fd;
  const char *peer; /* "the server" or "the client" */
  uint8_t *bytes;   /* of the message that is coming in: 4 of length, then the text */
  size_t held;
  json_t *kept; /* heard, but meant for later; NULL: none */
};

/* Takes the socket over and exchanges greetings. */
int control_channel_open(struct control_channel *channel, int fd, const char *peer);
void control_channel_close(struct control_channel *channel);

/* Takes the reference to `message`, which may be NULL: out of memory. */
int control_channel_send(struct control_channel *channel, json_t *message);

/* The next message, which must have this member. */
int control_channel_receive(struct control_channel *channel, const char *member,
                            uint64_t timeout_ns, json_t **message);

/* *message is NULL if none has come, or one is kept. */
int control_channel_poll(struct control_channel *channel, json_t **message);

/* For the next control_channel_receive: the other side is already a step further. */
void control_channel_keep(struct control_channel *channel, json_t *message);

/* Both sides have come to the step of this name. */
int control_channel_barrier(struct control_channel *channel, const char *step, uint64_t timeout_ns);

/* Tells the other side, as well as it goes, why this one ends. */
void control_channel_abort(struct control_channel *channel, const char *reason);

#endif
