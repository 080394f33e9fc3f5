/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_cm: a queue pair connected by librdmacm, at the port that the handshake carries.
 *
 *   dialling side    address -> route -> request ------> token is right: accept    listening side
 *                    token of the answer is right <----- and the port is closed
 *                    CONNECTED
 *
 * A request with another token is rejected, and the next one is waited for. The queue pair is ours,
 * with our protection domain: librdmacm opens the device a second time and knows only its number.
 *
 * Owns: an event channel, identifiers, a timer; all in qp->cm, until rdma_cm_free.
 * Threads: one at a time.  Blocks: as rdma_qp.h's; rdma_cm_free until the kernel is done.
 * Fails: negative errno, after LOG_INFO; then the queue pair is of no use any more. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_CM_H
#define NET_PLUGIN_LANE_RDMA_RDMA_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/rdma/rdma_facts.h"

struct rdma_cm;
struct rdma_qp;

/* Waits for the peer at this address, at a port of its own, for some seconds. */
int rdma_cm_listen(struct rdma_qp *qp, const struct rdma_facts *peer,
                   const struct sockaddr_storage *at, const struct lane_tokens *tokens,
                   uint16_t *port);
/* Begins to connect from one address to another, whose port is that of rdma_cm_listen. The caller
 * has a deadline. dscp: -1 none. */
int rdma_cm_connect(struct rdma_qp *qp, const struct rdma_facts *peer,
                    const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    const struct lane_tokens *tokens, int dscp);

/* Goes on with what has happened, whenever a descriptor is readable. -ENODEV: the device goes;
 * -ETIMEDOUT: the listening side waited in vain; others: it cannot be connected, or is not any
 * more. */
int rdma_cm_advance(struct rdma_qp *qp);
bool rdma_cm_is_connected(const struct rdma_cm *cm);

/* Readable when there is something to do: events; the end of the listening side's patience. */
int rdma_cm_event_fd(const struct rdma_cm *cm);
int rdma_cm_deadline_fd(const struct rdma_cm *cm); /* -1: it has none */

/* After the queue pair is destroyed. NULL: nothing happens. */
void rdma_cm_free(struct rdma_cm *cm);

#endif
