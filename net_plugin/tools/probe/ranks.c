/* SPDX-License-Identifier: Apache-2.0 */
/* See ranks.h. */
#include "net_plugin/tools/probe/ranks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/rendezvous.h"

#define PURPOSE "stratus probe"
#define PORT 29590

/* What a rank says to rank 0 when it comes. */
enum { RANK_AT = 0, TAKES_PART_AT = 4 };

/* ---- rank 0 ---- */

enum { NOT_COME = -1, NO_PART = INT_MIN };

/* A rank that has come; one per host takes part. */
static int take_in(int fd, const uint8_t hello[PEER_HELLO_BYTES], int size, int *sockets) {
  uint32_t rank = bytes_get_le32(hello + RANK_AT);
  if (rank == 0 || rank >= (uint32_t)size || sockets[rank] != NOT_COME) {
    close(fd);
    return cli_fail("a process says that it is rank %u of %d: do two have the same rank?", rank,
                    size);
  }
  sockets[rank] = fd;
  if (hello[TAKES_PART_AT] != 1) {
    close(fd);
    sockets[rank] = NO_PART;
  }
  return CLI_OK;
}

/* "3, 17, 18, ...": as many as have room. */
static int tell_missing(int size, const int *sockets, bool is_over) {
  char list[256] = "";
  size_t length = 0;
  int missing = 0;
  for (int rank = 1; rank < size; rank++) {
    if (sockets[rank] == NOT_COME && missing++ >= 0 && length + 16 < sizeof list) {
      length +=
          (size_t)snprintf(list + length, sizeof list - length, "%s%d", length ? ", " : "", rank);
    }
  }
  const char *more = length + 16 < sizeof list ? "" : ", ...";
  if (is_over) {
    return cli_fail("%d of %d ranks have not come: %s%s", missing, size, list, more);
  }
  cli_say("still waits for %d of %d ranks: %s%s", missing, size, list, more);
  return CLI_OK;
}

/* Every other rank, at `sockets`. */
static int take_in_all(const struct rendezvous_address *meeting, int size, int *sockets) {
  static struct peer_listener listener; /* too large for the stack */
  uint8_t hello[PEER_HELLO_BYTES];
  uint64_t until_ns = clock_now_ns() + PROBE_GATHER_NS;
  int fd, come = 1, status = rendezvous_open(&listener, PURPOSE, meeting, NULL);
  if (status != CLI_OK) {
    return status;
  }
  while (come < size && status == CLI_OK) {
    status = rendezvous_accept(&listener, clock_now_ns() + PROBE_TELL_NS, &fd, hello);
    if (status == CLI_OK && fd >= 0) {
      status = take_in(fd, hello, size, sockets);
      come++;
    } else if (status == CLI_OK) {
      status = tell_missing(size, sockets, clock_now_ns() >= until_ns);
    }
  }
  peer_listener_close(&listener);
  return status;
}

/* Takes ownership of the sockets. Each gets to know its place. */
static int greet_all(struct ranks *ranks, int size, const int *sockets, int status) {
  ranks->count = 1;
  for (int rank = 1; rank < size; rank++) {
    if (sockets[rank] >= 0 && status == CLI_OK && ranks->count == PROBE_HOSTS_MAX) {
      status = cli_fail("probe: more than %d hosts", PROBE_HOSTS_MAX);
    }
    if (sockets[rank] >= 0 && status != CLI_OK) {
      close(sockets[rank]);
    } else if (sockets[rank] >= 0) {
      status =
          control_channel_open(&ranks->channels[ranks->count++], sockets[rank], "another rank");
    }
  }
  if (status == CLI_OK && ranks->count == 1) {
    status = cli_fail("probe: all %d ranks are on this host; at least two hosts are needed", size);
  }
  for (unsigned i = 1; i < ranks->count && status == CLI_OK; i++) {
    status = control_channel_send(
        &ranks->channels[i], json_pack("{s:i, s:i}", "place", (int)i, "of", (int)ranks->count));
  }
  return status;
}

static int open_root(struct ranks *ranks, const struct rendezvous_address *meeting, int size) {
  int *sockets = calloc((size_t)size, sizeof *sockets);
  if (!sockets) {
    return cli_fail("out of memory");
  }
  for (int rank = 0; rank < size; rank++) {
    sockets[rank] = NOT_COME;
  }
  int status = greet_all(ranks, size, sockets, take_in_all(meeting, size, sockets));
  free(sockets);
  return status;
}

/* ---- the others ---- */

static int open_other(struct ranks *ranks, const struct rendezvous_address *meeting,
                      const struct launcher_place *place) {
  int fd;
  uint8_t hello[PEER_HELLO_BYTES] = { 0 };
  json_t *message;
  bytes_put_le32(hello + RANK_AT, (uint32_t)place->rank);
  hello[TAKES_PART_AT] = place->local_rank == 0;
  int status = rendezvous_call(PURPOSE, meeting, NULL, hello, &fd);
  if (status != CLI_OK) {
    return status;
  }
  if (!hello[TAKES_PART_AT]) {
    close(fd);
    return CLI_OK;
  }
  ranks->count = ranks->own = 1; /* as far as it is known */
  status = control_channel_open(&ranks->channels[0], fd, "rank 0");
  status = status
               ? status
               : control_channel_receive(&ranks->channels[0], "place", PROBE_GATHER_NS, &message);
  if (status != CLI_OK) {
    return status;
  }
  json_int_t own = json_integer_value(json_object_get(message, "place"));
  json_int_t count = json_integer_value(json_object_get(message, "of"));
  json_decref(message);
  ranks->own = (unsigned)own;
  ranks->count = (unsigned)count;
  return own >= 1 && own < count && count <= PROBE_HOSTS_MAX ? CLI_OK
                                                             : cli_fail("rank 0 sent no place");
}

/* ---- all ---- */

int ranks_open(struct ranks *ranks, const struct launcher_place *place, const char *root) {
  struct rendezvous_address meeting;
  ranks->count = ranks->own = 0;
  root = root ? root : place->first_host;
  if (!*root) {
    return cli_fail_usage(
        "probe: %s does not provide the address of rank 0: give --root HOST[:PORT]",
        place->launcher);
  }
  int status = rendezvous_parse(root, PORT, &meeting);
  if (status != CLI_OK) {
    return status;
  }
  return place->rank == 0 ? open_root(ranks, &meeting, place->size)
                          : open_other(ranks, &meeting, place);
}

int ranks_gather(struct ranks *ranks, json_t *mine, json_t **all) {
  *all = NULL;
  if (ranks->own > 0) {
    int status = control_channel_ask(&ranks->channels[0], json_pack("{s:o}", "mine", mine), "all",
                                     2 * PROBE_STEP_NS, all);
    json_t *list = json_incref(json_object_get(*all, "all"));
    json_decref(*all);
    *all = list;
    return status;
  }
  int status = CLI_OK;
  json_t *list = json_pack("[o]", mine), *message = NULL;
  for (unsigned i = 1; i < ranks->count && status == CLI_OK; i++) {
    status = control_channel_receive(&ranks->channels[i], "mine", PROBE_STEP_NS, &message);
    if (status == CLI_OK) {
      json_array_append(list, json_object_get(message, "mine"));
      json_decref(message);
    }
  }
  for (unsigned i = 1; i < ranks->count && status == CLI_OK; i++) {
    status = control_channel_send(&ranks->channels[i], json_pack("{s:O}", "all", list));
  }
  *all = list;
  return status;
}

void ranks_close(struct ranks *ranks, int status) {
  unsigned first = ranks->own > 0 ? 0 : 1, end = ranks->own > 0 ? 1 : ranks->count;
  for (unsigned i = first; i < end; i++) {
    if (status != CLI_OK) {
      control_channel_abort(&ranks->channels[i]);
    }
    control_channel_close(&ranks->channels[i]);
  }
}
