/* SPDX-License-Identifier: Apache-2.0 */
/* check_event: what a process tells stratus-run --check, which set STRATUS_CHECK for its job:
 * "TOKEN@ADDRESS:PORT,...", the addresses of its host, IPv6 in brackets.
 *
 * An event is one UDP datagram to each address: sending neither waits nor needs a thread, and a
 * lost one only means that less is known. Repeated events are the same as one. Who does not know
 * the token is not heard.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: silently; the job comes first. */
#ifndef COMMON_CHECK_EVENT_H
#define COMMON_CHECK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_VARIABLE "STRATUS_CHECK"

enum {
  CHECK_TOKEN_CHARS = 32,
  CHECK_HOST_MAX = 65,  /* HOST_NAME_MAX + 1 */
  CHECK_ID_MAX = 256,   /* NCCL_HOSTID is free text */
  CHECK_TEXT_MAX = 512, /* what there is to say */
  CHECK_DATAGRAM_MAX = 1200,
};

enum check_kind {
  CHECK_IN_USE,       /* NCCL has loaded the net plugin and got devices */
  CHECK_COMMUNICATOR, /* NCCL makes a communicator in this process: `ranks`, `nodes` */
  CHECK_NOT_HERE,     /* this host does not use stratus: `text` says why */
  CHECK_NOT_PEER,     /* a peer does not: `text` is its address, or what is known of it */
  CHECK_KIND_COUNT,
};

struct check_event {
  enum check_kind kind;
  long pid;
  char host[CHECK_HOST_MAX];  /* its name */
  char host_id[CHECK_ID_MAX]; /* what NCCL tells hosts apart by: NCCL_HOSTID, or name and boot */
  unsigned long ranks, nodes;
  uint64_t communicator; /* NCCL's number of it, equal on all ranks; 0: this release does not say */
  unsigned long number;  /* of the event in its process, from 1: the same event may come twice */
  int rank, size;        /* of the process, as its launcher says; size 0: not known */
  char text[CHECK_TEXT_MAX];
};

/* From this process, to whoever STRATUS_CHECK names; nothing without it. `text` may be NULL. */
void check_event_send(enum check_kind kind, const char *text);
/* CHECK_COMMUNICATOR, for each rank that this process has in it. */
void check_event_send_communicator(uint64_t communicator, unsigned long ranks, unsigned long nodes);

/* Fills in what is known of this process, and the next number. */
void check_event_begin(enum check_kind kind, struct check_event *event);

/* The bytes of a datagram; returns their number. */
size_t check_event_format(const struct check_event *event, const char *token,
                          char bytes[CHECK_DATAGRAM_MAX]);

/* False for what is no event with this token. All texts are visible ASCII and blanks then. */
bool check_event_parse(const char *bytes, size_t length, const char *token,
                       struct check_event *event);

#endif
