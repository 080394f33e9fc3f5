/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_stream: what plain and sealed lanes do alike with the stream of frames that arrives.
 * Owns: nothing.  Threads: the lane's.  Blocks: never.  Fails: negative errno, as lane.h's read. */
#ifndef NET_PLUGIN_LANE_TCP_TCP_STREAM_H
#define NET_PLUGIN_LANE_TCP_TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane.h"

/* Per call, so that one busy lane does not starve the others. */
#define TCP_READ_BUDGET_BYTES (1u << 20)

/* The frame that is arriving. */
struct tcp_arriving {
  bool in_payload;
  uint32_t payload_length, payload_got;
};

/* Its header has come. A frame without payload ends at once. */
int tcp_frame_begin(struct lane *lane, struct tcp_arriving *arriving,
                    const uint8_t header[WIRE_HEADER_BYTES], uint64_t now_ns);
int tcp_frame_begin_decoded(struct lane *lane, struct tcp_arriving *arriving,
                            const struct wire_header *header, uint64_t now_ns);
/* So many more bytes of its payload have come, perhaps the last ones. */
int tcp_frame_grow(struct lane *lane, struct tcp_arriving *arriving, size_t bytes, uint64_t now_ns);
/* Where the next byte of the payload goes; NULL if the link wants no more of this lane. Asked each
 * time: the user may have left meanwhile. */
uint8_t *tcp_frame_end(struct lane *lane, const struct tcp_arriving *arriving);

/* After close: reads into the buffer and forgets it. True at the end of the stream. */
bool tcp_stream_drop(int fd, void *buffer, size_t bytes);

#endif
