/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of lanes and of TCP flows, with its unit and the evidence for it.
 * Where none is given a value is not measured by itself: chosen by reasoning, and part of what was
 * measured as a whole. */
#ifndef NET_PLUGIN_LANE_LIMITS_H
#define NET_PLUGIN_LANE_LIMITS_H

#include "common/time_units.h"

/* What one call of read takes, about: one busy lane must not starve the others. */
#define LANE_READ_BYTES (1u << 20)

/* ---- TCP: reading and writing ---- */

/* Holds several small messages; of a bulk chunk at most this much is copied twice. */
#define TCP_READ_BUFFER_BYTES 8192
/* A frame of up to so many bytes is copied behind the others: the kernel takes one piece faster
 * than two, and several in one call at far less than the cost of as many calls. Larger ones are
 * worth the copy only where there are others to go with them. */
#define TCP_SMALL_BYTES 4096
#define TCP_FOLLOWED_BYTES (16u << 10)
#define TCP_GATHER_BYTES (72u << 10)
/* A payload from here on is bulk: no more than the next header is read along with it. A lane whose
 * last written frame is bulk does not look first how much has arrived, with TCP_PEEK_BYTES. */
#define TCP_LARGE_BYTES (16u << 10)
#define TCP_PEEK_BYTES 1024
/* A chunk of the default size in one system call. With 8 and 16 records instead of 4: 0.94 to 0.98
 * of the speed (docs/measurements.md). */
#define TCP_SEALED_BUFFER_BYTES (4 * TCP_SEAL_RECORD_BYTES + 128)

/* ---- TCP: sockets ---- */

/* Unsent bytes that the kernel queues per flow (TCP_NOTSENT_LOWAT): a deep queue on a slow flow
 * pins chunks that a faster flow could have carried. Without it: nothing beyond noise in the
 * ablation of docs/measurements.md. */
#define TCP_UNSENT_BYTES (128 << 10)

/* Connections that wait for accept; the kernel takes the smaller one of it and net.core.somaxconn.
 */
#define TCP_LISTEN_BACKLOG 4096
/* Between two warnings of a kind. */
#define TCP_WARN_INTERVAL_NS (60 * NS_PER_S)
/* TCP keepalive probes of an idle flow, so many seconds apart; the flow ends if none is answered.
 * Not measured by themselves. */
#define TCP_PROBES 3
#define TCP_PROBE_S 3
/* The kernel waits at most so many ms before it sends again, so that a flow moves soon when its
 * path is there again; the least that it takes. */
#define TCP_SEND_AGAIN_MS 1000
/* Longer than a kernel delays an acknowledgement, which is 40 ms (TCP_DELACK_MIN), and than a few
 * round trips; shorter than the 200 ms after which it sends again (TCP_RTO_MIN). */
#define TCP_ACK_WAIT_NS (50 * NS_PER_MS)
#define TCP_ACK_WAIT_RTTS 4u

#endif
