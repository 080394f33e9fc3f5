/* SPDX-License-Identifier: Apache-2.0 */
/* message: windows of messages on both sides. Everything is O(1) per chunk; loops only run over
 * messages that change state, each once. */
#include "net_plugin/link/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"

/* ---- what kernels poll ---- */

#define LL_LINE_BYTES 16 /* data, flag, data, flag: 4 bytes each */
#define LL128_LINE_BYTES 128
#define LL128_FLAG_AT 120

/* Both tests end at the first line that differs: another kind of message costs one or two
 * comparisons. */
static bool has_ll_form(const uint8_t *data, size_t bytes) {
  uint32_t flag = bytes_get_le32(data + 4);
  for (size_t at = 0; at < bytes && flag != 0; at += LL_LINE_BYTES) {
    if (bytes_get_le32(data + at + 4) != flag || bytes_get_le32(data + at + 12) != flag) {
      return false;
    }
  }
  return flag != 0;
}

static bool has_ll128_form(const uint8_t *data, size_t bytes) {
  uint64_t flag = bytes_get_le64(data + LL128_FLAG_AT);
  for (size_t at = LL128_FLAG_AT; at < bytes && flag != 0; at += LL128_LINE_BYTES) {
    if (bytes_get_le64(data + at) != flag) {
      return false;
    }
  }
  return flag != 0;
}

enum ll_form ll_detect(const void *data, size_t bytes) {
  if (bytes == 0) {
    return LL_NONE;
  }
  if (bytes % LL128_LINE_BYTES == 0 && has_ll128_form(data, bytes)) {
    return LL_LINES;
  }
  bool is_ll =
      bytes % LL_LINE_BYTES == 0 && bytes <= LL_DETECT_MAX_BYTES && has_ll_form(data, bytes);
  return is_ll ? LL_WORDS : LL_NONE;
}

/* ---- sender ---- */

void outgoing_init(struct outgoing_ring *ring, uint32_t eager_bytes, uint8_t *copies,
                   size_t copies_bytes) {
  *ring = (struct outgoing_ring){ .eager_bytes = eager_bytes,
                                  .copies = copies,
                                  .copies_bytes = copies_bytes };
}

static struct outgoing *outgoing_at(struct outgoing_ring *ring, uint64_t message) {
  return &ring->slots[message % LINK_WINDOW];
}

/* Complete are those that are acknowledged, and copies that were written. */
static void outgoing_complete(struct outgoing_ring *ring) {
  for (; ring->completed < ring->posted; ring->completed++) {
    const struct outgoing *message = outgoing_at(ring, ring->completed);
    bool is_free =
        message->is_copied && ring->completed < ring->cutting && message->written >= message->bytes;
    if (ring->completed >= ring->retired && !is_free) {
      return;
    }
  }
}

/* Copies the message if it is small and there is room. While nothing is in flight the ring starts
 * over, so that few small messages always use the same, warm memory. */
static void outgoing_copy(struct outgoing_ring *ring, struct outgoing *message) {
  if (ring->retired == ring->posted) {
    ring->copies_begin = ring->copies_end = 0;
  }
  if (message->bytes > ring->eager_bytes) {
    return;
  }
  uint64_t place = ring->copies_end;
  uint64_t at = ring->copies_bytes > 0 ? place % ring->copies_bytes : 0;
  if (at + message->bytes > ring->copies_bytes) { /* not across the end of the memory */
    place += ring->copies_bytes - at;
    at = 0;
  }
  if (place + message->bytes - ring->copies_begin > ring->copies_bytes) {
    return;
  }
  if (message->bytes > 0) {
    memcpy(ring->copies + at, message->data, message->bytes);
  }
  message->data = ring->copies + at;
  message->is_copied = true;
  message->copy_end = ring->copies_end = place + message->bytes;
}

int outgoing_post(struct outgoing_ring *ring, const void *data, uint64_t bytes, bool may_copy) {
  uint64_t oldest = ring->retired < ring->taken ? ring->retired : ring->taken;
  if (ring->posted - oldest >= LINK_WINDOW) {
    return -EAGAIN;
  }
  struct outgoing *message = outgoing_at(ring, ring->posted);
  *message = (struct outgoing){ .data = data, .bytes = bytes };
  if (may_copy) {
    outgoing_copy(ring, message);
  }
  ring->posted++;
  return 0;
}

struct chunk outgoing_cut(struct outgoing_ring *ring, uint32_t length) {
  assert(ring->cutting < ring->posted);
  struct outgoing *message = outgoing_at(ring, ring->cutting);
  assert(length <= message->bytes - message->cut && (length > 0 || message->bytes == 0));
  struct chunk chunk = {
    .offset = message->cut,
    .length = length,
    .message = (uint32_t)ring->cutting,
  };
  message->cut += length;
  message->chunks++;
  if (message->cut == message->bytes) {
    ring->cutting++;
  }
  return chunk;
}

void outgoing_written(struct outgoing_ring *ring, struct chunk chunk) {
  if (outgoing_is_live(ring, chunk)) {
    outgoing_of(ring, chunk)->written += chunk.length;
    outgoing_complete(ring);
  }
}

void outgoing_acked(struct outgoing_ring *ring, struct chunk chunk) {
  struct outgoing *message = outgoing_of(ring, chunk);
  if (!outgoing_is_live(ring, chunk)) {
    return;
  }
  assert(message->chunks > 0);
  message->chunks--;
  message->acked += chunk.length;
  if (message->chunks > 0 || chunk.message != (uint32_t)ring->retired) {
    return;
  }
  while (ring->retired < ring->cutting && outgoing_at(ring, ring->retired)->chunks == 0) {
    const struct outgoing *retired = outgoing_at(ring, ring->retired++);
    ring->copies_begin = retired->is_copied ? retired->copy_end : ring->copies_begin;
  }
  outgoing_complete(ring);
}

void outgoing_retire_all(struct outgoing_ring *ring) {
  for (uint64_t message = ring->retired; message < ring->posted; message++) {
    struct outgoing *slot = outgoing_at(ring, message);
    slot->cut = slot->acked = slot->bytes;
    slot->chunks = 0;
  }
  ring->cutting = ring->retired = ring->posted;
  outgoing_complete(ring);
}

void outgoing_truncate(struct outgoing_ring *ring) {
  uint64_t end = ring->completed;
  while (end < ring->posted && outgoing_at(ring, end)->is_copied) {
    end++;
  }
  ring->posted = end;
  if (ring->cutting > ring->posted) {
    ring->cutting = ring->posted;
  }
}

bool outgoing_next_completion(struct outgoing_ring *ring, uint64_t *bytes) {
  if (ring->taken == ring->completed) {
    return false;
  }
  *bytes = outgoing_at(ring, ring->taken)->bytes;
  ring->taken++;
  return true;
}

/* ---- receiver ---- */

void incoming_init(struct incoming_ring *ring, uint32_t eager_bytes, unsigned eager_slots,
                   uint8_t *buffers, size_t stride) {
  *ring = (struct incoming_ring){
    .eager_bytes = eager_bytes,
    .eager_slots = eager_slots,
    .buffers = buffers,
    .stride = stride,
  };
}

static uint8_t *bounce_buffer(const struct incoming_ring *ring, uint64_t message) {
  return ring->buffers + message % ring->eager_slots * ring->stride;
}

static void bounce_copy_out(const struct incoming_ring *ring, uint64_t number,
                            struct incoming *message) {
  if (message->bytes > 0) {
    bytes_copy_upwards(message->data, bounce_buffer(ring, number), message->bytes);
  }
  message->is_bounced = false;
}

/* Grants what is posted, but nothing behind a message that still occupies its bounce buffer: a
 * grant of message m lets the sender use the buffer of m for message m + eager_slots. */
static void incoming_grant(struct incoming_ring *ring) {
  while (ring->granted < ring->posted && !ring->slots[incoming_slot(ring->granted)].is_bounced) {
    ring->granted++;
  }
}

static void incoming_complete(struct incoming_ring *ring) {
  while (ring->completed < ring->posted && ring->slots[incoming_slot(ring->completed)].is_landed) {
    ring->completed++;
  }
}

int incoming_post(struct incoming_ring *ring, void *data, uint64_t capacity, uint64_t now_ns) {
  struct incoming *message = &ring->slots[incoming_slot(ring->posted)];
  if (ring->posted - ring->taken >= LINK_WINDOW) {
    return -EAGAIN;
  }
  if (message->bytes > capacity) {
    return -EMSGSIZE;
  }
  message->data = data;
  message->capacity = capacity;
  message->posted_ns = now_ns;
  if (message->is_landed) {
    bounce_copy_out(ring, ring->posted, message);
  }
  ring->posted++;
  incoming_grant(ring);
  incoming_complete(ring);
  return 0;
}

int incoming_begin(struct incoming_ring *ring, const struct wire_header *header, uint8_t **buffer) {
  struct incoming *message = &ring->slots[incoming_slot(header->message)];
  bool is_early = header->message >= ring->posted;
  bool is_allowed = !is_early || (header->message - ring->granted < ring->eager_slots &&
                                  header->total <= ring->eager_bytes);
  if (header->message < ring->completed || !is_allowed || message->is_landed) {
    return -EPROTO;
  }
  if (!is_early && header->total > message->capacity) {
    return -EMSGSIZE;
  }
  if ((message->is_known && header->total != message->bytes) ||
      header->length > header->total - message->landed) {
    return -EPROTO;
  }
  message->is_known = true;
  message->is_bounced |= is_early;
  message->bytes = header->total;
  *buffer =
      header->offset + (message->is_bounced ? bounce_buffer(ring, header->message) : message->data);
  return 0;
}

int incoming_end(struct incoming_ring *ring, const struct wire_header *header) {
  struct incoming *message = &ring->slots[incoming_slot(header->message)];
  if (header->message < ring->completed || message->is_landed ||
      header->length > message->bytes - message->landed) {
    return -EPROTO;
  }
  message->landed += header->length;
  message->is_landed = message->landed == message->bytes;
  if (message->is_landed && header->message < ring->posted) {
    if (message->is_bounced) { /* posted meanwhile */
      bounce_copy_out(ring, header->message, message);
      incoming_grant(ring);
    }
    incoming_complete(ring);
  }
  return 0;
}

uint64_t incoming_landed(const struct incoming_ring *ring) {
  uint64_t message = ring->completed;
  while (message < ring->completed + ring->eager_slots &&
         ring->slots[incoming_slot(message)].is_landed) {
    message++;
  }
  return message;
}

bool incoming_next_completion(struct incoming_ring *ring, uint64_t *bytes) {
  if (ring->taken == ring->completed) {
    return false;
  }
  struct incoming *message = &ring->slots[incoming_slot(ring->taken++)];
  *bytes = message->bytes;
  *message = (struct incoming){ .data = NULL };
  return true;
}
