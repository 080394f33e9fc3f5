/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_opener: opens the devices of NICs, and registers memory with them, on workers.
 *
 *   not open --take--> a worker searches --> READY --it is lost--> not open
 *                                  `-- none: no search for a while
 *
 * A driver may take long over it: as long as a device is being removed, and the time for all memory
 * that the job has registered. The holder of the engine lock must not wait for that.
 *
 * Owns: its searches: rdma_memory holds devices.  Threads: any.
 * Blocks: take and has never; wait up to RDMA_OPENER_WAIT_NS; finish until no search is left.
 * Fails: take returns NULL: there is no device, or none yet. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_OPENER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_OPENER_H

#include "net_plugin/lane/rdma/rdma_device.h"

/* The NIC's device, held; memory is registered with it. NULL: why has the reason, and is empty
 * while a worker searches. Who holds an engine lock must not be the last to close it. */
struct rdma_device *rdma_opener_take(const struct nic *nic, char why[RDMA_WHY_MAX]);
/* Would take return one? Holds nothing. */
bool rdma_opener_has(const struct nic *nic, char why[RDMA_WHY_MAX]);
/* Until it is known which of these NICs have a device, if that does not take too long. */
void rdma_opener_wait(const struct nic *nics, unsigned count);
/* Nothing may call take any more. */
void rdma_opener_finish(void);

#endif
