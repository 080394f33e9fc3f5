/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_endpoint: queue pairs as endpoints; implements endpoint.h. Who holds an engine lock only
 * starts steps; a worker takes them:
 *
 *   IDLE --a step begins--> BUSY --it is over: endpoint_fd is readable--> DONE --advance--> IDLE
 *                            `--freed meanwhile--> ABANDONED: the worker frees it
 *
 * Owns, threads, blocks: as endpoint.h says.  Fails: negative errno, after the log has the reason.
 */
#ifndef NET_PLUGIN_LANE_RDMA_RDMA_ENDPOINT_H
#define NET_PLUGIN_LANE_RDMA_RDMA_ENDPOINT_H

#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/rdma/rdma_facts.h"

struct rdma_qp;

/* Its queue pair; no step is in progress. */
struct rdma_qp *rdma_endpoint_qp(struct endpoint *endpoint);
/* A lane has taken the queue pair: frees the rest. */
void rdma_endpoint_taken(struct endpoint *endpoint);

#endif
