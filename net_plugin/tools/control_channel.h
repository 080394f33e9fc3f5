/* SPDX-License-Identifier: Apache-2.0 */
/* control_channel: the control connection of `stratus perf` and `probe`: JSON objects in both
 * directions, each preceded by its length.
 * Owns: the socket, until control_channel_close; messages are the receiver's (json_decref).
 * Threads: the main thread.
 * Blocks: control_channel_receive for at most timeout_ns until a message begins; all of them up to
 * RENDEZVOUS_TIMEOUT_NS, if the other side stops within one.
 * Fails: with a message and CLI_FAILED; if the other side gave up, with its reason. */
#ifndef NET_PLUGIN_TOOLS_CONTROL_CHANNEL_H
#define NET_PLUGIN_TOOLS_CONTROL_CHANNEL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CONTROL_CHANNEL_MESSAGE_MAX = 4 << 20,
};

struct control_channel {
  int fd;
  const char *peer; /* "the server" or "the client" */
  json_t *kept;     /* received too early, for the next control_channel_receive; NULL: none */
};

/* Takes ownership of the socket. Both sides tell their release, which must be the same. */
int control_channel_open(struct control_channel *channel, int fd, const char *peer);
void control_channel_close(struct control_channel *channel);

/* Takes the reference to `message`; NULL counts as out of memory. */
int control_channel_send(struct control_channel *channel, json_t *message);

/* The next message, which must have this member. */
int control_channel_receive(struct control_channel *channel, const char *member,
                            uint64_t timeout_ns, json_t **message);

/* *message is NULL if none has begun to arrive, or one is kept. */
int control_channel_poll(struct control_channel *channel, json_t **message);

/* Keeps a message of the next step for control_channel_receive. Takes the reference. */
void control_channel_keep(struct control_channel *channel, json_t *message);

/* Sends `question`, whose reference it takes, and waits for the message that has this member. */
int control_channel_ask(struct control_channel *channel, json_t *question, const char *member,
                        uint64_t timeout_ns, json_t **answer);

/* Both sides call it with the same name: each gets what the other has. Takes the reference to
 * `mine`. */
int control_channel_exchange(struct control_channel *channel, const char *name, uint64_t timeout_ns,
                             json_t *mine, json_t **theirs);

/* Returns when both sides have called it with this step. */
int control_channel_barrier(struct control_channel *channel, const char *step, uint64_t timeout_ns);

/* Best effort: sends the other side the reason why this one ends (cli_first_failure). */
void control_channel_abort(struct control_channel *channel);

#endif
