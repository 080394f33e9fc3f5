/* SPDX-License-Identifier: Apache-2.0 */
/* guest: connections that have not proved yet that they belong to the job. They are few, cheap and
 * short-lived, so that scanners and strangers cost nothing.
 *
 *   GREETING --hello--> PROVING --proof--> welcome.c has it
 *   any --garbage, end, deadline, more guests than the port's share--> closed
 *
 * A guest has GUEST_NS for everything, however slowly it speaks. The process has one budget of
 * guests: GUESTS_MAX, or less where it may open few descriptors. Each port has an equal share, so
 * that engines need not ask each other. Where a port has too many, the address that has the most
 * loses its oldest: one that floods pushes out itself. Where descriptors are missing, the oldest
 * guest of all goes (port.c).
 *
 * Owns: the sockets of its guests.  Threads: holder of the engine lock.  Blocks: never.  Fails:
 * cannot; a guest that cannot be had is closed. */
#ifndef NET_PLUGIN_SETUP_GUEST_H
#define NET_PLUGIN_SETUP_GUEST_H

#include <sys/socket.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"

/* Of a process. A handshake takes milliseconds, so this is enough for tens of thousands of honest
 * connections per second. */
#define GUESTS_MAX 512
/* Guests take at most this part of the descriptors that the process may open: the application and
 * the flows need the rest. */
#define GUESTS_PART 8
/* A port's share is never less. */
#define GUESTS_LEAST 4

struct guests {
  struct engine *engine;
  const struct nic *nic; /* where they arrive */
  struct list callers;   /* by address, in the order of their first guest */
  unsigned count;
};

void guests_init(struct guests *guests, struct engine *engine, const struct nic *nic);
/* Takes the socket over. */
void guests_admit(struct guests *guests, int fd, const struct sockaddr_storage *from);
/* Since when the oldest is here; 0: there is none. */
uint64_t guests_oldest_ns(const struct guests *guests);
/* Closes the oldest, if there is one. */
void guests_evict_oldest(struct guests *guests);
/* The port is no more. */
void guests_close_all(struct guests *guests);

#endif
