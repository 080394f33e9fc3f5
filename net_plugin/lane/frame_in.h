/* SPDX-License-Identifier: Apache-2.0 */
/* frame_in: the frame that is arriving on a lane, of whatever kind the lane is. Reports its
 * header, progress and end to the link, which decides where the payload goes.
 * Owns: nothing.  Threads: the lane's.  Blocks: never.  Fails: negative errno, as lane.h's read. */
#ifndef NET_PLUGIN_LANE_FRAME_IN_H
#define NET_PLUGIN_LANE_FRAME_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_plugin/lane/lane.h"

struct frame_in {
  bool in_payload; /* the header is complete, the payload is not */
  bool is_coded;
  uint32_t payload_length, payload_got;
};

/* Its header is complete. A frame without payload ends at once. */
int frame_in_begin(struct lane *lane, struct frame_in *frame,
                   const uint8_t header[WIRE_HEADER_BYTES], uint64_t now_ns);
int frame_in_begin_decoded(struct lane *lane, struct frame_in *frame,
                           const struct wire_header *header, uint64_t now_ns);
/* That many more bytes of its payload are in place, perhaps the last ones. */
int frame_in_grow(struct lane *lane, struct frame_in *frame, size_t bytes, uint64_t now_ns);
/* Where the next byte of the payload goes; NULL: the link takes no more from this lane. Ask before
 * each write: the user may take the memory back at any time. */
uint8_t *frame_in_end(struct lane *lane, const struct frame_in *frame);

#endif
