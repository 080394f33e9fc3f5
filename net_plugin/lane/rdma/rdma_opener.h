/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_opener: opens the devices of NICs, and registers memory with them, in threads of its own.
 *
 *   not open --somebody asks--> a thread looks --> READY --it is lost--> not open
 *                                    `-- none: nobody looks for a while
 *
 * A driver may take long over it: as long as a device is being removed, say, and the time of all
 * memory that the job has registered. Who holds the engine lock must not wait for that.
 *
 * Owns: nothing but its threads, one for each NIC that is being looked for: rdma_memory holds
 * devices.  Threads: any.
 * Blocks: take never for a driver; wait up to RDMA_OPENER_WAIT_NS; finish until no thread is left.
 * Fails: take returns NULL: there is no device, or none yet. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_OPENER_H
#define NET_PLUGIN_LANE_RDMA_RDMA_OPENER_H

#include "common/clock.h"
#include "net_plugin/lane/rdma/rdma_device.h"

/* Since a thread began to look. Real devices are open in a few hundredths of a second, emulated
 * machines take seconds to load libibverbs. */
#define RDMA_OPENER_WAIT_NS (15 * NS_PER_S)

/* The NIC's device, held; memory is registered with it. NULL: why says why, and is empty while a
 * thread looks for one. */
struct rdma_device *rdma_opener_take(const struct nic *nic, char why[RDMA_WHY_MAX]);
/* Until it is known which of these NICs have a device, if that does not take too long. */
void rdma_opener_wait(const struct nic *nics, unsigned count);
/* Nobody may ask any more. */
void rdma_opener_finish(void);

#endif
