/* SPDX-License-Identifier: Apache-2.0 */
/* Length-prefixed JSON on a TCP socket. */
#include "net_plugin/tools/perf/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/version.h"
#include "net_plugin/tools/meet.h"
#include "net_plugin/tools/perf/failure.h"

enum { GREETING_BYTES = 64, LENGTH_BYTES = 4 };
/* Counts changes of what is said here. */
#define PROTOCOL 2

static int fail_lost(const struct talk *talk, int error) {
  return error == -ECONNRESET || error == -EPIPE
             ? failure("%s has gone: look there for the reason", talk->peer)
             : failure("lost %s: %s", talk->peer, strerror(-error));
}

/* ---- greeting ---- */

static int greet(struct talk *talk) {
  char mine[GREETING_BYTES] = { 0 }, theirs[GREETING_BYTES + 1] = { 0 };
  snprintf(mine, sizeof mine, "stratus-net perf %d of %s\n", PROTOCOL, STRATUS_VERSION);
  int error = meet_write(talk->fd, mine, sizeof mine);
  error = error ? error : meet_read(talk->fd, theirs, GREETING_BYTES);
  if (error) {
    return fail_lost(talk, error);
  }
  if (strncmp(theirs, "stratus-net perf ", 17) != 0) {
    return failure("what answers there is no stratus-net perf");
  }
  if (atoi(theirs + 17) != PROTOCOL) {
    theirs[strcspn(theirs, "\n")] = '\0';
    return failure("%s speaks another version (\"%s\", this is \"%.*s\"): use the same on both "
                   "hosts",
                   talk->peer, theirs, (int)strcspn(mine, "\n"), mine);
  }
  return CLI_OK;
}

int talk_open(struct talk *talk, int fd, const char *peer) {
  *talk = (struct talk){ .fd = fd, .peer = peer, .bytes = malloc(LENGTH_BYTES + TALK_MESSAGE_MAX) };
  return talk->bytes ? greet(talk) : failure("out of memory");
}

void talk_close(struct talk *talk) {
  close(talk->fd);
  free(talk->bytes);
  json_decref(talk->kept);
}

/* ---- sending ---- */

int talk_say(struct talk *talk, json_t *message) {
  char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
  json_decref(message);
  if (!text || strlen(text) > TALK_MESSAGE_MAX) {
    free(text);
    return failure("a message to %s cannot be made: out of memory", talk->peer);
  }
  uint8_t length[LENGTH_BYTES];
  bytes_put_le32(length, (uint32_t)strlen(text));
  int error = meet_write(talk->fd, length, sizeof length);
  error = error ? error : meet_write(talk->fd, text, strlen(text));
  free(text);
  return error ? fail_lost(talk, error) : CLI_OK;
}

/* A socket that is closed while bytes wait in it to be read resets the connection, and what was
 * said last would be lost. */
static void let_read(struct talk *talk) {
  struct timeval patience = { .tv_sec = 2 };
  uint8_t unheard[4096];
  shutdown(talk->fd, SHUT_WR);
  setsockopt(talk->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  uint64_t until_ns = clock_now_ns() + 2 * NS_PER_S;
  while (recv(talk->fd, unheard, sizeof unheard, 0) > 0 && clock_now_ns() < until_ns) {
  }
}

void talk_give_up(struct talk *talk, const char *reason) {
  json_t *message = json_pack("{s:s}", "failed", reason);
  char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
  uint8_t length[LENGTH_BYTES];
  bytes_put_le32(length, text ? (uint32_t)strlen(text) : 0);
  if (text && meet_write(talk->fd, length, sizeof length) == 0) {
    meet_write(talk->fd, text, strlen(text));
    let_read(talk);
  }
  free(text);
  json_decref(message);
}

/* ---- receiving ---- */

/* How many bytes the buffer will have when what is coming in is complete; 0: too many. */
static size_t bytes_wanted(const struct talk *talk) {
  if (talk->held < LENGTH_BYTES) {
    return LENGTH_BYTES;
  }
  size_t length = bytes_get_le32(talk->bytes);
  return length <= TALK_MESSAGE_MAX ? LENGTH_BYTES + length : 0;
}

static int decode(struct talk *talk, json_t **message) {
  json_error_t error;
  *message =
      json_loadb((const char *)talk->bytes + LENGTH_BYTES, talk->held - LENGTH_BYTES, 0, &error);
  talk->held = 0;
  if (!json_is_object(*message)) {
    json_decref(*message);
    *message = NULL;
    return failure("%s sent something that is no message: %s", talk->peer, error.text);
  }
  const char *reason = json_string_value(json_object_get(*message, "failed"));
  if (reason) {
    int status = failure("%s gave up: %s", talk->peer, reason);
    json_decref(*message);
    *message = NULL;
    return status;
  }
  return CLI_OK;
}

void talk_keep(struct talk *talk, json_t *message) {
  talk->kept = message;
}

int talk_poll(struct talk *talk, json_t **message) {
  *message = NULL;
  while (!talk->kept) {
    size_t wanted = bytes_wanted(talk);
    if (wanted == 0) {
      return failure("%s sent a message that is too long", talk->peer);
    }
    if (talk->held >= LENGTH_BYTES && talk->held == wanted) {
      return decode(talk, message);
    }
    ssize_t got = recv(talk->fd, talk->bytes + talk->held, wanted - talk->held, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return CLI_OK;
    }
    if (got <= 0) {
      return fail_lost(talk, got == 0 ? -ECONNRESET : -errno);
    }
    talk->held += (size_t)got;
  }
  return CLI_OK;
}

/* Waits for one message. */
static int wait_for(struct talk *talk, const char *member, uint64_t until_ns, json_t **message) {
  int status = talk_poll(talk, message);
  while (status == CLI_OK && !*message) {
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= until_ns) {
      return failure("%s does not answer (waiting for \"%s\")", talk->peer, member);
    }
    struct pollfd poll_fd = { .fd = talk->fd, .events = POLLIN };
    poll(&poll_fd, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
    status = talk_poll(talk, message);
  }
  return status;
}

int talk_hear(struct talk *talk, const char *member, uint64_t patience_ns, json_t **message) {
  *message = talk->kept;
  talk->kept = NULL;
  int status = *message ? CLI_OK : wait_for(talk, member, clock_now_ns() + patience_ns, message);
  if (status != CLI_OK) {
    return status;
  }
  if (!json_object_get(*message, member)) {
    json_decref(*message);
    *message = NULL;
    return failure("%s said something else than \"%s\"", talk->peer, member);
  }
  return CLI_OK;
}

int talk_meet(struct talk *talk, const char *step, uint64_t patience_ns) {
  json_t *message = NULL;
  int status = talk_say(talk, json_pack("{s:b}", step, 1));
  status = status == CLI_OK ? talk_hear(talk, step, patience_ns, &message) : status;
  json_decref(message);
  return status;
}
