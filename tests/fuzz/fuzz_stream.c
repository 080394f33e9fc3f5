/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of a TCP lane, fed by a hostile peer over a socket pair: frames with any fields, raw
 * bytes between them, in pieces of any size. What it accepts keeps the link in order; what it
 * refuses ends the lane, and the next one works again. Half of the inputs feed an encrypted lane:
 * by a peer who has the keys, and by somebody on the way, who changes bytes. */
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/lane/tcp/tcp_lane.h"
#include "net_plugin/lane/tcp/tcp_seal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/coding_memory.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"

enum { BUFFERS = 16, BUFFER_BYTES = 9000, STREAM_BYTES = 1 << 16 };

static struct link *link_under_test;
static struct coding_memory lent;
static struct lane *lane;
static int peer_fd = -1;
static uint32_t epoch;
static uint64_t now_ns;
static uint8_t *buffers[BUFFERS];
static uint64_t posted, completed;
static bool is_sender;

/* Of the encrypted lane. */
static bool is_sealed;
static const struct lane_crypto crypto = {
  .cipher = LANE_CHACHA20POLY1305, /* every processor has it */
  .send = { 1, 2, 3 },
  .receive = { 4, 5, 6 },
};
static struct tcp_seal seal; /* the peer's, for what it sends */

static void post_one(void) {
  uint64_t slot = posted % BUFFERS;
  if (buffers[slot]) {
    return;
  }
  buffers[slot] = calloc(1, BUFFER_BYTES);
  FUZZ_CHECK(buffers[slot] != NULL);
  int error = is_sender
                  ? link_send_posted(link_under_test, buffers[slot], BUFFER_BYTES, NULL, now_ns)
                  : link_receive_posted(link_under_test, buffers[slot], BUFFER_BYTES, NULL, now_ns);
  if (error) {
    free(buffers[slot]);
    buffers[slot] = NULL;
  } else {
    posted++;
  }
}

static void end_lane(void) {
  lane->ops->fini(lane);
  tcp_seal_end(&seal);
  close(peer_fd);
  lane = NULL;
  link_lane_lost(link_under_test, 0, epoch, now_ns);
}

/* True if a lane is there, or could be opened. */
static bool have_lane(void) {
  struct link_order order;
  bool is_ordered = !is_sender;
  while (link_next_order(link_under_test, &order, now_ns)) {
    if (order.kind == LINK_ORDER_OPEN) {
      is_ordered = true;
      epoch = order.epoch;
    } else if (order.kind == LINK_ORDER_MOVE) {
      lane->ops->move(lane, order.payload);
    } else if (lane && lane->epoch <= order.epoch) {
      end_lane();
    }
  }
  if (lane || !is_ordered) {
    return lane != NULL;
  }
  int fds[2];
  FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
  if (!is_sender && !link_lane_fence(link_under_test, 0, ++epoch, now_ns)) {
    close(fds[0]);
    close(fds[1]);
    return false;
  }
  lane = tcp_lane_open(link_under_test, 0, epoch, fds[0], is_sealed ? &crypto : NULL);
  FUZZ_CHECK(tcp_seal_start(&seal, TCP_SEAL_CLOSES, crypto.cipher, crypto.receive));
  FUZZ_CHECK(lane != NULL);
  peer_fd = fds[1];
  link_lane_up(link_under_test, 0, epoch, now_ns);
  return true;
}

static void take_completions(void) {
  uint64_t completion;
  while (link_next_completion(link_under_test, &completion)) {
    uint64_t slot = completed++ % BUFFERS;
    FUZZ_CHECK(completed <= posted && completion <= BUFFER_BYTES);
    fuzz_read_all(buffers[slot], BUFFER_BYTES);
    free(buffers[slot]);
    buffers[slot] = NULL;
  }
}

/* Has the lane taken all of its frame? */
static void tell_link(void) {
  if (lane && lane_has_taken(lane)) {
    link_frame_taken(link_under_test, 0, now_ns);
  }
}

/* What the link wants written, into a socket that the peer reads at times. */
static void write_frames(bool is_read) {
  static uint8_t sink[1 << 16];
  while (lane && lane->can_write && pick_lane(link_under_test, 1) == 0) {
    struct link_frame frame;
    if (!next_frame(link_under_test, 0, &frame, now_ns)) {
      break;
    }
    if (lane->ops->write(lane, &frame) != 0) {
      end_lane();
    }
    tell_link();
  }
  if (lane && lane->can_write && lane->ops->resume(lane) != 0) {
    end_lane();
  }
  while (is_read && lane && recv(peer_fd, sink, sizeof sink, 0) > 0) {
    if (lane->ops->resume(lane) != 0) {
      end_lane();
    }
    tell_link();
  }
}

/* ---- the peer ---- */

static uint8_t stream[STREAM_BYTES];

static size_t add_frame(struct fuzz_input *input, size_t end) {
  uint8_t how = fuzz_u8(input);
  struct wire_header header = {
    .type = how < 248 ? 1 + how % 7 : WIRE_ABORT,
    .length = fuzz_u8(input),
    .message = fuzz_u8(input) % 20,
    .offset = fuzz_u8(input),
  };
  if (header.type == WIRE_DATA) {
    header.length *= how & 64 ? 40 : 1;
    header.offset *= how & 128 ? 40 : 0;
    if (how & 16) {
      header.flags = WIRE_IS_CODED;
      header.coded = header.length;
      header.length = CODEC_MIN_BYTES;
    }
    header.total = header.offset + header.length + (how & 32 ? fuzz_u16(input) : 0);
  } else if (header.type == WIRE_WINDOW) {
    header.length = (header.length & 0x30) + WIRE_MIN_LANDED_BYTES;
    header.number = fuzz_u8(input);
  } else {
    header.length = header.type == WIRE_ABORT ? header.length % (WIRE_MAX_REASON_BYTES + 1) : 0;
  }
  uint32_t length = header.coded > 0 ? header.coded : header.length;
  if (end + WIRE_HEADER_BYTES + length > STREAM_BYTES) {
    return end;
  }
  wire_header_encode(&header, stream + end);
  uint8_t *payload = stream + end + WIRE_HEADER_BYTES;
  if (header.coded > 0 && fuzz_u8(input) < 192) { /* of single bytes, 4096 of them */
    static const uint8_t begin[] = { CODEC_VERSION, 1, 0, 0, 0, 16, 0, 0, 8, 0, 0, 0 };
    uint32_t known = length < sizeof begin ? length : (uint32_t)sizeof begin;
    memcpy(payload, begin, known);
    payload += known;
    length -= known;
  }
  fuzz_bytes(input, payload, length < 64 ? length : 64);
  return (size_t)(payload - stream) + length;
}

static size_t make_stream(struct fuzz_input *input) {
  size_t end = 0;
  for (unsigned frames = fuzz_u8(input) % 32; frames > 0 && input->left > 0; frames--) {
    if (fuzz_u8(input) < 240) {
      end = add_frame(input, end);
    } else if (end + 64 <= STREAM_BYTES) {
      size_t raw = fuzz_u8(input) % 64;
      fuzz_bytes(input, stream + end, raw);
      end += raw;
    }
  }
  return end;
}

static void lose_lane(void) {
  end_lane();
  now_ns += 20000000; /* past the backoff */
  link_time_passed(link_under_test, now_ns);
}

/* False: the lane did not want it. */
static bool deliver_piece(const uint8_t *bytes, size_t count) {
  size_t got;
  lane->is_polled = count % 2 == 1;
  if (lane->is_polled && lane->ops->read(lane, now_ns, &got) != 0) {
    lose_lane();
    return false;
  }
  ssize_t sent = send(peer_fd, bytes, count, MSG_NOSIGNAL);
  FUZZ_CHECK(sent == (ssize_t)count);
  if (lane->ops->read(lane, now_ns, &got) != 0) {
    lose_lane();
    return false;
  }
  FUZZ_CHECK(got <= STREAM_BYTES);
  return true;
}

/* A record, whole or in parts. */
static void deliver_parts(struct fuzz_input *input, const uint8_t *record, size_t length,
                          bool is_whole) {
  size_t at = 0;
  while (at < length) {
    size_t part = is_whole ? length : 1 + (length - at) * fuzz_u8(input) / 256;
    if (!deliver_piece(record + at, part)) {
      return;
    }
    at += part;
  }
}

/* The bytes as a record. Of one that was changed on the way nothing is taken. */
static void deliver_record(struct fuzz_input *input, const uint8_t *text, size_t bytes) {
  static uint8_t record[TCP_SEAL_RECORD_BYTES];
  size_t length = tcp_seal_close(&seal, text, bytes, record);
  uint8_t how = fuzz_u8(input);
  uint64_t before_ns = now_ns++;
  if (how < 240) {
    deliver_parts(input, record, length, how < 200);
    return;
  }
  record[fuzz_u16(input) % length] ^= (uint8_t)(1u << how % 8);
  deliver_parts(input, record, length, how % 2);
  struct link_lane_view view;
  link_view_lane(link_under_test, 0, &view);
  FUZZ_CHECK(view.heard_ns <= before_ns);
  if (lane) { /* by its length, more of it is to come */
    lose_lane();
  }
}

static void deliver(struct fuzz_input *input, size_t bytes) {
  size_t at = 0;
  while (at < bytes && have_lane()) {
    uint8_t how = fuzz_u8(input);
    size_t piece = how < 128 ? 1u + how : (size_t)(how - 127) * 64;
    piece = piece < bytes - at ? piece : bytes - at;
    if (is_sealed) {
      deliver_record(input, stream + at, piece);
    } else {
      deliver_piece(stream + at, piece);
    }
    at += piece;
    link_check(link_under_test);
    take_completions();
    write_frames(how & 1);
    link_check(link_under_test);
    if (how % 8 == 0) {
      post_one();
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  uint8_t shape = fuzz_u8(&input);
  is_sender = shape & 1;
  is_sealed = (shape & 64) != 0 && lane_crypto_ciphers() != 0;
  now_ns = 1;
  epoch = 0;
  posted = completed = 0;
  struct link_config config = {
    .role = is_sender ? LINK_SENDER : LINK_RECEIVER,
    .policy = { .lanes = 1,
                .chunk_bytes = 4096,
                .compress = (shape & 128) != 0 ? POLICY_COMPRESS_ON : POLICY_COMPRESS_OFF },
    .eager_bytes = shape & 2 ? 1024 : 0,
    .eager_slots = shape & 2 ? 8 : 0,
    .timeout_ns = 1000000000,
    .seed = shape,
    .wants_checksums = (shape & 4) != 0,
    .coding_memory = coding_memory_get,
    .coding_owner = &lent,
  };
  link_under_test = link_init(fuzz_link_memory(&config), &config, now_ns);
  for (unsigned i = 0; i < (shape >> 3 & 7u); i++) {
    post_one();
  }
  deliver(&input, make_stream(&input));
  if (lane) {
    end_lane();
  }
  for (unsigned i = 0; i < BUFFERS; i++) {
    free(buffers[i]);
    buffers[i] = NULL;
  }
  coding_memory_free(&lent);
  return 0;
}
