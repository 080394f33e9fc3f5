/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_guard: looks after devices that are open, in a thread of its own.
 *
 * Drivers that cannot take a device away from programs (SoftRoCE) do not tell that it is to be
 * removed: they only wait until all have closed it. Its entry in sysfs is gone by then, which is
 * looked at once in a second. And where a device has no lanes at the moment, nobody else reads its
 * events.
 *
 * Owns: its thread, from the first start to finish.  Threads: any.
 * Blocks: finish until the thread has ended.
 * Fails: without a thread, lost devices are noticed when somebody uses them. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_GUARD_H
#define NET_PLUGIN_LANE_RDMA_RDMA_GUARD_H

/* A device is open. */
void rdma_guard_start(void);
/* Nobody may start it meanwhile. */
void rdma_guard_finish(void);

#endif
