/* SPDX-License-Identifier: Apache-2.0 */
/* Length-prefixed JSON on a TCP socket. */
#include "net_plugin/tools/control_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/peer_proof.h"
#include "common/version.h"
#include "net_plugin/tools/limits.h"

enum { LENGTH_BYTES = 4 };

static int fail_lost(const struct control_channel *channel, int error) {
  return error == -ECONNRESET || error == -EPIPE
             ? cli_fail("%s has gone: see its messages for the reason", channel->peer)
             : cli_fail("lost %s: %s", channel->peer, strerror(-error));
}

/* All of it: 0 or negative errno. */
static int move(int fd, void *bytes, size_t count, bool is_send) {
  return peer_move(fd, bytes, count, is_send, clock_now_ns() + RENDEZVOUS_TIMEOUT_NS);
}

void control_channel_close(struct control_channel *channel) {
  close(channel->fd);
  json_decref(channel->kept);
}

/* ---- sending ---- */

/* 0 or negative errno. Takes the reference. */
static int write_message(int fd, json_t *message) {
  char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
  size_t bytes = text ? strlen(text) : 0;
  uint8_t length[LENGTH_BYTES];
  json_decref(message);
  bytes_put_le32(length, (uint32_t)bytes);
  int error = bytes == 0 || bytes > CONTROL_CHANNEL_MESSAGE_MAX
                  ? -ENOMEM
                  : move(fd, length, sizeof length, true);
  error = error ? error : move(fd, text, bytes, true);
  free(text);
  return error;
}

int control_channel_send(struct control_channel *channel, json_t *message) {
  int error = write_message(channel->fd, message);
  return error == -ENOMEM ? cli_fail("a message to %s: out of memory", channel->peer)
         : error          ? fail_lost(channel, error)
                          : CLI_OK;
}

/* Reads what the peer has sent: closing a socket with unread bytes resets the connection, and the
 * peer would lose this message. */
void control_channel_abort(struct control_channel *channel) {
  struct timeval timeout = { .tv_sec = 2 };
  uint8_t unread[4096];
  if (write_message(channel->fd, json_pack("{s:s}", "failed", cli_first_failure())) != 0) {
    return;
  }
  shutdown(channel->fd, SHUT_WR);
  setsockopt(channel->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  uint64_t until_ns = clock_now_ns() + 2 * NS_PER_S;
  while (recv(channel->fd, unread, sizeof unread, 0) > 0 && clock_now_ns() < until_ns) {
  }
}

/* ---- receiving ---- */

static int decode(const struct control_channel *channel, const char *text, size_t bytes,
                  json_t **message) {
  json_error_t error;
  json_t *read = json_loadb(text, bytes, 0, &error);
  const char *reason = json_string_value(json_object_get(read, "failed"));
  int status = !json_is_object(read)
                   ? cli_fail("%s sent an invalid message: %s", channel->peer, error.text)
               : reason ? cli_fail("%s gave up: %s", channel->peer, reason)
                        : CLI_OK;
  *message = status == CLI_OK ? read : NULL;
  if (status != CLI_OK) {
    json_decref(read);
  }
  return status;
}

static int read_message(const struct control_channel *channel, json_t **message) {
  uint8_t length[LENGTH_BYTES];
  int error = move(channel->fd, length, sizeof length, false);
  size_t bytes = error ? 0 : bytes_get_le32(length);
  if (bytes > CONTROL_CHANNEL_MESSAGE_MAX) {
    return cli_fail("%s sent a message that is too long", channel->peer);
  }
  char *text = malloc(bytes + 1);
  error = error ? error : !text ? -ENOMEM : move(channel->fd, text, bytes, false);
  int status = error ? fail_lost(channel, error) : decode(channel, text, bytes, message);
  free(text);
  return status;
}

void control_channel_keep(struct control_channel *channel, json_t *message) {
  channel->kept = message;
}

int control_channel_poll(struct control_channel *channel, json_t **message) {
  struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };
  *message = NULL;
  return !channel->kept && poll(&poll_fd, 1, 0) > 0 ? read_message(channel, message) : CLI_OK;
}

/* Waits for one message. */
static int wait_for(const struct control_channel *channel, const char *member, uint64_t timeout_ns,
                    json_t **message) {
  struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };
  uint64_t now_ns = clock_now_ns(), until_ns = now_ns + timeout_ns;
  while (poll(&poll_fd, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) <= 0) {
    now_ns = clock_now_ns();
    if (now_ns >= until_ns) {
      return cli_fail("%s does not respond (waiting for \"%s\")", channel->peer, member);
    }
  }
  return read_message(channel, message);
}

int control_channel_receive(struct control_channel *channel, const char *member,
                            uint64_t timeout_ns, json_t **message) {
  *message = channel->kept;
  channel->kept = NULL;
  int status = *message ? CLI_OK : wait_for(channel, member, timeout_ns, message);
  if (status != CLI_OK) {
    return status;
  }
  if (!json_object_get(*message, member)) {
    json_decref(*message);
    *message = NULL;
    return cli_fail("%s sent another message than \"%s\"", channel->peer, member);
  }
  return CLI_OK;
}

int control_channel_ask(struct control_channel *channel, json_t *question, const char *member,
                        uint64_t timeout_ns, json_t **answer) {
  int status = control_channel_send(channel, question);
  *answer = NULL;
  return status ? status : control_channel_receive(channel, member, timeout_ns, answer);
}

int control_channel_exchange(struct control_channel *channel, const char *name, uint64_t timeout_ns,
                             json_t *mine, json_t **theirs) {
  json_t *message;
  int status =
      control_channel_ask(channel, json_pack("{s:o}", name, mine), name, timeout_ns, &message);
  *theirs = json_incref(json_object_get(message, name));
  json_decref(message);
  return status;
}

int control_channel_barrier(struct control_channel *channel, const char *step,
                            uint64_t timeout_ns) {
  json_t *theirs;
  int status = control_channel_exchange(channel, step, timeout_ns, json_true(), &theirs);
  json_decref(theirs);
  return status;
}

int control_channel_open(struct control_channel *channel, int fd, const char *peer) {
  *channel = (struct control_channel){ .fd = fd, .peer = peer };
  json_t *theirs = NULL;
  int status = control_channel_exchange(channel, "release", RENDEZVOUS_TIMEOUT_NS,
                                        json_string(STRATUS_VERSION), &theirs);
  const char *release = json_string_value(theirs);
  if (status == CLI_OK && (!release || strcmp(release, STRATUS_VERSION) != 0)) {
    status =
        cli_fail("%s is of release %s, this side of " STRATUS_VERSION ": use the same on all hosts",
                 channel->peer, release ? release : "unknown");
  }
  json_decref(theirs);
  return status;
}
