/* SPDX-License-Identifier: Apache-2.0 */
/* guest: connections that have not proved yet that they belong to the job. They are few, cheap and
 * short-lived, so that scanners and strangers cost nothing.
 *
 *   GREETING --hello--> PROVING --proof--> welcome.c has it
 *   any --garbage, end, deadline, more guests than GUESTS_MAX--> closed
 *
 * A guest has GUEST_NS for everything, however slowly it speaks. Where there are too many, the
 * address that has the most loses its oldest: one that floods pushes out itself.
 *
 * Owns: the sockets of its guests.  Threads: holder of the engine lock.  Blocks: never.  Fails:
 * cannot; a guest that cannot be had is closed. */
#ifndef NET_PLUGIN_SETUP_GUEST_H
#define NET_PLUGIN_SETUP_GUEST_H

#include <sys/socket.h>

#include "common/list.h"
#include "net_plugin/engine/engine.h"

#define GUESTS_MAX 512

struct guests {
  struct engine *engine;
  const struct nic *nic; /* where they arrive */
  struct list callers;   /* by address, in the order of their first guest */
  unsigned count;
};

void guests_init(struct guests *guests, struct engine *engine, const struct nic *nic);
/* Takes the socket over. */
void guests_admit(struct guests *guests, int fd, const struct sockaddr_storage *from);
void guests_close_all(struct guests *guests);

#endif
