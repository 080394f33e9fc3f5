/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_guard: monitors open devices, in a thread of its own.
 *
 * Drivers that cannot take a device away from programs (SoftRoCE) raise no event when it is to be
 * removed: they only wait until all have closed it. Its entry in sysfs is gone by then, which is
 * checked once in a second. And while a device has no lanes, nothing else reads its events.
 *
 * Owns: its thread, from the first start to finish.  Threads: any.
 * Blocks: finish until the thread has ended.
 * Fails: without a thread, lost devices are noticed when they are used. */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_GUARD_H
#define NET_PLUGIN_LANE_RDMA_RDMA_GUARD_H

/* A device is open. */
void rdma_guard_start(void);
/* Nobody may start it meanwhile. */
void rdma_guard_finish(void);

#endif
