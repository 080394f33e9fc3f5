/* SPDX-License-Identifier: Apache-2.0 */
/* What an RDMA lane sends: see rdma_lane.h. Every send has a slot, where its prefix, a header and
 * small payloads are put together; larger payloads are gathered from where they are, if that is
 * registered. One send in RDMA_SIGNAL_EVERY asks for a completion, which frees the slots of all
 * before.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/bytes.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_lane_state.h"

/* Slots of the peer that are free. */
static uint32_t credit(const struct rdma_lane *rdma) {
  return RDMA_SLOTS - (rdma->sent - rdma->peer_freed);
}

static bool has_slot(const struct rdma_lane *rdma) {
  return rdma->sent - rdma->done < RDMA_SLOTS;
}

/* The peer's last slot is for a send that only carries credit. */
static bool can_send(const struct rdma_lane *rdma) {
  return has_slot(rdma) && credit(rdma) > 1 && rdma->has_heard;
}

void rdma_lane_update(struct rdma_lane *rdma) {
  rdma->lane.can_write = !rdma->is_closing && !rdma->lane.has_unwritten && can_send(rdma);
}

int rdma_lane_give_up(struct rdma_lane *rdma) {
  rdma->is_closed = true;
  return 0;
}

/* The next send's flags and identity: one in RDMA_SIGNAL_EVERY completes visibly. */
static void sign(struct rdma_lane *rdma, struct ibv_send_wr *request, bool is_last) {
  request->wr_id = RDMA_IS_SEND | (uint32_t)(rdma->sent + 1);
  if (is_last || rdma->sent + 1 - rdma->signalled >= RDMA_SIGNAL_EVERY) {
    request->send_flags |= IBV_SEND_SIGNALED;
    rdma->signalled = rdma->sent + 1;
  }
}

/* One send: `copied` bytes of the stream lie behind the prefix in the slot, more follow from
 * `piece` if its length is not 0. write: goes before it, or NULL. */
static int post(struct rdma_lane *rdma, uint32_t copied, struct ibv_sge piece,
                struct ibv_send_wr *write, bool is_last) {
  struct rdma_qp *qp = rdma->qp;
  uint8_t *slot = rdma_qp_send_slot(qp, rdma->sent % RDMA_SLOTS);
  bytes_put_le32(slot, rdma->freed);
  bytes_put_le32(slot + 4, copied + piece.length);
  struct ibv_sge pieces[2] = {
    { .addr = (uintptr_t)slot, .length = RDMA_PREFIX_BYTES + copied, .lkey = qp->slots_mr->lkey },
    piece,
  };
  struct ibv_send_wr request = {
    .sg_list = pieces,
    .num_sge = piece.length ? 2 : 1,
    .opcode = IBV_WR_SEND,
  };
  sign(rdma, &request, is_last);
  if (piece.length == 0 && pieces[0].length <= qp->max_inline) {
    request.send_flags |= IBV_SEND_INLINE;
  }
  struct ibv_send_wr *bad, *first = &request;
  if (write) {
    write->next = &request;
    first = write;
  }
  int error = ibv_post_send(qp->qp, first, &bad);
  if (error) {
    return -error;
  }
  rdma->bytes_written += RDMA_PREFIX_BYTES + copied + piece.length;
  rdma->announced = rdma->freed;
  rdma->sent++;
  return 0;
}

int rdma_lane_send_credit(struct rdma_lane *rdma) {
  return post(rdma, 0, (struct ibv_sge){ 0 }, NULL, rdma->is_closing);
}

/* ---- frames ---- */

/* Where the payload can be read by the device; false: nowhere. */
static bool find_payload(const struct rdma_lane *rdma, const uint8_t *data, uint32_t bytes,
                         struct ibv_sge *piece) {
  const struct link_frame *frame = &rdma->frame;
  const struct lane_memory *memory = frame->memory;
  uint32_t remote;
  *piece = (struct ibv_sge){ .addr = (uintptr_t)data, .length = bytes };
  return frame->header[1] == WIRE_DATA && memory && lane_memory_covers(memory, data, bytes) &&
         rdma_memory_keys(memory, rdma->qp->endpoint.domain.index, &piece->lkey, &remote);
}

/* The next send of the frame: its header if that is not posted yet, and as much as fits. */
static int send_part(struct rdma_lane *rdma) {
  struct link_frame *frame = &rdma->frame;
  uint8_t *slot = rdma_qp_send_slot(rdma->qp, rdma->sent % RDMA_SLOTS) + RDMA_PREFIX_BYTES;
  uint32_t room = rdma->qp->send_bytes - RDMA_PREFIX_BYTES, copied = 0;
  if (!rdma->has_header_put) {
    memcpy(slot, frame->header, WIRE_HEADER_BYTES);
    copied = WIRE_HEADER_BYTES;
    room -= WIRE_HEADER_BYTES;
  }
  uint32_t left = frame->length - rdma->put, part = left < room ? left : room;
  struct ibv_sge piece = { 0 };
  if (part > 0) {
    const uint8_t *data = (const uint8_t *)frame->payload + rdma->put;
    if (part <= RDMA_COPY_BYTES || !find_payload(rdma, data, part, &piece)) {
      memcpy(slot + copied, data, part);
      copied += part;
      piece = (struct ibv_sge){ 0 };
    }
  }
  int error = post(rdma, copied, piece, NULL, false);
  if (!error) {
    rdma->has_header_put = true;
    rdma->put += part;
  }
  return error;
}

static int send_parts(struct rdma_lane *rdma) {
  bool is_whole = false;
  while (!is_whole && can_send(rdma)) {
    int error = send_part(rdma);
    if (error) {
      return error;
    }
    is_whole = rdma->put == rdma->frame.length;
  }
  rdma->lane.has_unwritten = !is_whole;
  return 0;
}

/* Can the payload be written to the target? False: it must be sent. */
static bool can_place(const struct rdma_lane *rdma, struct ibv_sge *piece, uint32_t *key) {
  const struct link_frame *frame = &rdma->frame;
  if (!frame->remote_buffer || frame->length <= LINK_PLACE_BYTES) {
    return false;
  }
  *key = frame->remote_buffer->keys[rdma->qp->peer_key];
  return *key != 0 && find_payload(rdma, frame->payload, frame->length, piece);
}

/* The write takes a receive of the peer's, as a send does. */
static int post_immediate(struct rdma_lane *rdma, struct ibv_send_wr *write, uint32_t immediate) {
  struct ibv_send_wr *bad;
  write->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  write->imm_data = htobe32(immediate);
  sign(rdma, write, false);
  int error = ibv_post_send(rdma->qp->qp, write, &bad);
  rdma->sent += error ? 0 : 1;
  return -error;
}

/* A header of its own also carries the free slots: cheaper than a send for that alone. */
static bool owes_credit(const struct rdma_lane *rdma) {
  return rdma->freed - rdma->announced >= RDMA_SLOTS / 4;
}

static int post_placed(struct rdma_lane *rdma, struct ibv_send_wr *write) {
  struct link_frame *frame = &rdma->frame;
  uint32_t immediate;
  if (rdma->qp->device->port.has_immediate && !owes_credit(rdma) &&
      wire_header_to_immediate(frame->header, &immediate)) {
    return post_immediate(rdma, write, immediate);
  }
  wire_header_place(frame->header);
  memcpy(rdma_qp_send_slot(rdma->qp, rdma->sent % RDMA_SLOTS) + RDMA_PREFIX_BYTES, frame->header,
         WIRE_HEADER_BYTES);
  return post(rdma, WIRE_HEADER_BYTES, (struct ibv_sge){ 0 }, write, false);
}

static int place(struct rdma_lane *rdma, struct ibv_sge piece, uint32_t key) {
  const struct link_frame *frame = &rdma->frame;
  struct ibv_send_wr write = {
    .sg_list = &piece,
    .num_sge = 1,
    .opcode = IBV_WR_RDMA_WRITE,
    .wr.rdma = { .remote_addr = frame->remote_buffer->address + frame->offset, .rkey = key },
  };
  int error = post_placed(rdma, &write);
  rdma->bytes_written += error ? 0 : frame->length;
  return error;
}

int rdma_lane_write(struct lane *lane, const struct link_frame *frame) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  struct ibv_sge piece;
  uint32_t key;
  rdma->frame = *frame;
  rdma->put = 0;
  rdma->has_header_put = false;
  int error = can_place(rdma, &piece, &key) ? place(rdma, piece, key) : send_parts(rdma);
  rdma_lane_update(rdma);
  return error;
}

int rdma_lane_resume(struct lane *lane) {
  struct rdma_lane *rdma = (struct rdma_lane *)lane;
  int error = lane->has_unwritten ? send_parts(rdma) : 0;
  rdma_lane_update(rdma);
  return error;
}

/* ---- after completions ---- */

/* All that was sent has arrived: the peer may hear that this side is done. The last sends may not
 * have asked for completions. */
static int end_socket(struct rdma_lane *rdma) {
  int error = 0;
  if (rdma->signalled != rdma->sent && has_slot(rdma) && credit(rdma) > 0) {
    error = rdma_lane_send_credit(rdma);
  }
  if (!error && rdma->done == rdma->sent && !rdma->is_shut) {
    rdma->is_shut = true;
    shutdown(rdma->socket, SHUT_WR);
  }
  return error;
}

int rdma_lane_continue(struct rdma_lane *rdma) {
  int error = 0;
  if (rdma->is_closing) {
    return end_socket(rdma);
  }
  if (rdma->lane.has_unwritten) {
    error = send_parts(rdma);
  }
  if (!error && rdma->freed - rdma->announced >= RDMA_SLOTS / 2 && has_slot(rdma) &&
      credit(rdma) > 0) {
    error = rdma_lane_send_credit(rdma);
  }
  rdma_lane_update(rdma);
  return error;
}
