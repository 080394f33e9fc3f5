/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_choice: whether a lane through a NIC may be an RDMA lane, and the queue pair for it.
 * Devices are opened in the background, when they are asked about; until then there is none.
 * Owns: nothing.  Threads: any.  Blocks: rdma_choice_wait, see there; rdma_choice_make as
 * rdma_qp_new does.
 * Fails: no queue pair: the lane is a TCP flow. Why is told once, later on only in the trace. */
#ifndef NET_PLUGIN_SETUP_RDMA_CHOICE_H
#define NET_PLUGIN_SETUP_RDMA_CHOICE_H

#include <stdbool.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/lane/rdma/rdma_facts.h"

struct rdma_qp;

/* Before a connection is made, and without the engine's lock: until it is known which NICs have a
 * device, but not for long (rdma_opener.h). */
void rdma_choice_wait(const struct nic *nics, unsigned count);

/* Keys of a target that this side wishes or grants: 0 if none of these NICs has a device, or data
 * is to be encrypted. A device that does not work now may do so later, and a connection keeps its
 * number of keys. */
unsigned rdma_choice_remote_keys(const struct nic *nics, unsigned count);
/* Now. */
bool rdma_choice_has_device(const struct nic *nic);
/* is_sender: this side sends the data. NULL: none. */
struct rdma_qp *rdma_choice_make(const struct nic *nic, bool is_sender);

/* Do librdmacm's ways connect the two, or does the handshake? -EOPNOTSUPP: one side must have what
 * the other never does. */
int rdma_choice_uses_cm(const struct rdma_qp *qp, const struct rdma_facts *peer, bool *uses_cm);

#endif
