/* SPDX-License-Identifier: Apache-2.0 */
/* A link whose peer and network do anything at all: the input is a program of facts (frames with
 * any fields in any order, lanes that come and go, time, a user who posts and leaves). After each
 * step the invariants hold, no byte lands outside the user's buffers, and none after the user left.
 *
 * The owner of the lanes, which is our own code, keeps to link.h: it reports what it was ordered,
 * carries out orders at once, and writes only what it was handed. */
#include <errno.h>

#include "common/bytes.h"
#include "net_plugin/policy/limits.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/coding_memory.h"
#include "tests/lib/link_check.h"
#include "tests/lib/link_parts.h"

enum {
  STEPS_MAX = 400,
  LARGEST = 70000, /* several chunks; larger than the eager limit of any configuration here */
  CHUNK = LINK_CODED_BYTES,
};

/* A frame that the link handed out and that is on its way to the kernel. */
struct writing {
  bool is_in_progress;
  struct link_frame frame;
};

static struct coding_memory lent;

static struct world {
  struct link *link;
  struct link_config config;
  uint64_t now_ns;
  bool is_detached;
  uint8_t *buffers[LINK_WINDOW]; /* of messages posted and not completed, by number */
  size_t sizes[LINK_WINDOW];
  uint64_t posted, completed;
  uint32_t ordered[WIRE_MAX_LANES]; /* the epoch ordered (sender) or admitted (receiver); 0: none */
  uint32_t open[WIRE_MAX_LANES];    /* the epoch of what is open; 0: nothing */
  uint32_t payload[WIRE_MAX_LANES]; /* bytes of the frame that is arriving */
  uint32_t chunk[WIRE_MAX_LANES];   /* that it stands for, compressed; 0: it is not compressed */
  bool is_arriving[WIRE_MAX_LANES];
  struct writing writing[WIRE_MAX_LANES];
} world;

static void close_lane(unsigned lane) {
  world.open[lane] = 0;
  world.is_arriving[lane] = false;
  world.writing[lane].is_in_progress = false;
}

static void carry_out_orders(void) {
  struct link_order order;
  while (link_next_order(world.link, &order, world.now_ns)) {
    FUZZ_CHECK(order.lane < world.config.policy.lanes);
    if (order.kind == LINK_ORDER_OPEN) {
      FUZZ_CHECK(world.config.role == LINK_SENDER && order.epoch > world.ordered[order.lane]);
      world.ordered[order.lane] = order.epoch;
    } else if (order.kind == LINK_ORDER_MOVE) {
      FUZZ_CHECK(world.writing[order.lane].is_in_progress);
      world.writing[order.lane].frame.payload = order.payload;
    } else if (world.open[order.lane] && world.open[order.lane] <= order.epoch) {
      close_lane(order.lane);
    }
  }
}

static void check_frame_buffers(void) {
  for (unsigned lane = 0; lane < world.config.policy.lanes; lane++) {
    if (world.writing[lane].is_in_progress) {
      fuzz_read_all(world.writing[lane].frame.payload, world.writing[lane].frame.length);
    }
  }
}

/* ---- what the user does ---- */

static void post(struct fuzz_input *input) {
  static const uint32_t sizes[] = { 0, 1, 64, 4095, 4096, CHUNK, CHUNK + 1, LARGEST };
  uint8_t choice = fuzz_u8(input);
  size_t bytes = choice & 8 ? fuzz_u16(input) : sizes[choice & 7];
  uint64_t slot = world.posted % LINK_WINDOW;
  if (world.is_detached || world.buffers[slot]) {
    return;
  }
  uint8_t *buffer = malloc(bytes + !bytes);
  FUZZ_CHECK(buffer != NULL);
  memset(buffer, choice, bytes);
  const struct wire_remote_buffer target = { (uintptr_t)buffer, bytes, { choice } };
  int error = world.config.role == LINK_SENDER
                  ? link_send_posted(world.link, buffer, bytes, NULL, world.now_ns)
                  : link_receive_posted(world.link, buffer, bytes, choice & 16 ? &target : NULL,
                                        world.now_ns);
  if (error) {
    free(buffer);
    FUZZ_CHECK(error == -EAGAIN || error == link_status(world.link));
    return;
  }
  world.buffers[slot] = buffer;
  world.sizes[slot] = bytes;
  world.posted++;
}

static void take_completions(void) {
  uint64_t completion;
  while (link_next_completion(world.link, &completion)) {
    uint64_t slot = world.completed++ % LINK_WINDOW;
    FUZZ_CHECK(world.completed <= world.posted && completion <= world.sizes[slot]);
    FUZZ_CHECK(world.config.role == LINK_RECEIVER || completion == world.sizes[slot]);
    free(world.buffers[slot]);
    world.buffers[slot] = NULL;
  }
}

static void free_buffers(void) {
  for (unsigned i = 0; i < LINK_WINDOW; i++) {
    free(world.buffers[i]);
    world.buffers[i] = NULL;
  }
}

static void detach(void) {
  link_user_detached(world.link, world.now_ns);
  world.is_detached = true;
  carry_out_orders();
  free_buffers();
  check_frame_buffers();
}

/* ---- what the lanes and their peers do ---- */

static void lane_up(struct fuzz_input *input, unsigned lane) {
  uint32_t epoch = world.ordered[lane];
  if (world.config.role == LINK_RECEIVER) {
    epoch = fuzz_u8(input);
    if (!link_lane_fence(world.link, lane, epoch, world.now_ns)) {
      return;
    }
    carry_out_orders();
    close_lane(lane);
    world.ordered[lane] = epoch;
  } else if (epoch == 0 || world.open[lane] >= epoch) {
    return;
  }
  close_lane(lane);
  world.open[lane] = epoch;
  link_lane_up(world.link, lane, epoch, world.now_ns);
  bool may_be_rdma = world.config.remote_keys > 0 && lane % 2 == 0 && !world.is_detached;
  if (may_be_rdma && link_status(world.link) == 0) {
    link_lane_is_rdma(world.link, lane);
  }
}

static void lane_lost(struct fuzz_input *input, unsigned lane) {
  uint32_t epoch = world.open[lane] ? world.open[lane] : world.ordered[lane];
  uint8_t less = fuzz_u8(input); /* news of an older epoch */
  if (epoch > less) {
    if (less == 0) {
      close_lane(lane);
    }
    link_lane_lost(world.link, lane, epoch - less, world.now_ns);
  }
}

/* Fields near what is plausible, or anything. */
static uint64_t field(struct fuzz_input *input, uint64_t plausible) {
  uint8_t choice = fuzz_u8(input);
  return choice < 200 ? choice % 100 : choice < 240 ? plausible + choice - 220 : fuzz_u64(input);
}

/* A chunk of equal bytes, compressed; how long that is. `out` has room for any. */
static uint32_t code_chunk(uint8_t value, uint32_t bytes, uint8_t *out) {
  static uint8_t chunk[CHUNK];
  memset(chunk, value, bytes);
  return codec_encode(1, chunk, bytes, out).bytes;
}

static uint8_t compressed_chunk[CHUNK + CODEC_SLACK_BYTES];

static void make_coded(struct fuzz_input *input, struct wire_header *header) {
  uint8_t how = fuzz_u8(input);
  header->flags = WIRE_IS_CODED;
  header->length = CODEC_MIN_BYTES + (uint32_t)(fuzz_u16(input) % (CHUNK - CODEC_MIN_BYTES + 2));
  header->total = header->offset + header->length + how % 3;
  header->coded = how < 128 && header->length <= CHUNK
                      ? code_chunk(0, header->length, compressed_chunk)
                      : fuzz_u16(input);
}

static bool make_header(struct fuzz_input *input, struct wire_header *header) {
  uint8_t bytes[WIRE_HEADER_BYTES];
  uint8_t choice = fuzz_u8(input);
  *header = (struct wire_header){ .type = choice < 240 ? 1 + choice % 7 : WIRE_ABORT };
  header->message = field(input, world.completed);
  bool has_number = header->type == WIRE_DATA || header->type == WIRE_WINDOW;
  header->number = has_number ? field(input, world.posted) : 0;
  if (header->type == WIRE_DATA) {
    header->total = field(input, CHUNK);
    header->offset = field(input, header->total);
    uint64_t length = field(input, header->total - header->offset);
    header->length = (uint32_t)(length < LARGEST ? length : header->total - header->offset);
    uint8_t how = fuzz_u8(input);
    header->flags = how % 3 ? 0 : WIRE_IS_PLACED;
    if (how >= 192) {
      make_coded(input, header);
    }
  } else if (header->type == WIRE_WINDOW) {
    header->offset = field(input, world.posted);
    header->total = world.config.remote_keys ? fuzz_u8(input) % 8u : 0;
    header->length = WIRE_MIN_LANDED_BYTES + fuzz_u8(input) % 5u * 4 + fuzz_u8(input) % 3u * 8 +
                     (uint32_t)header->total * wire_remote_buffer_bytes(world.config.remote_keys);
  } else {
    header->offset = field(input, 1);
    header->length = header->type == WIRE_ABORT ? fuzz_u8(input) % (WIRE_MAX_REASON_BYTES + 2) : 0;
  }
  wire_header_encode(header, bytes);
  return wire_header_decode(bytes, header) == 0;
}

static void frame_begins(struct fuzz_input *input, unsigned lane) {
  struct wire_header header;
  if (!world.open[lane] || world.is_arriving[lane] || !make_header(input, &header)) {
    return;
  }
  int error = link_frame_received(world.link, lane, &header, world.now_ns);
  if (error) {
    bool has_no_memory = error == -ENOMEM && header.coded > 0 && (lent.refused >> lane & 1) != 0;
    FUZZ_CHECK(error == -EPROTO || error == -ESTALE || error == -EMSGSIZE || has_no_memory);
    close_lane(lane);
    return;
  }
  world.is_arriving[lane] = true;
  world.payload[lane] = wire_stream_bytes(&header);
  world.chunk[lane] = header.coded > 0 ? header.length : 0;
}

/* What might have landed, so that chunks are acknowledged, and remote buffers as they come. */
static void fill_landed(struct fuzz_input *input, unsigned lane, uint8_t *payload) {
  const struct wire_header *header = &world.link->lanes[lane].header;
  uint32_t length = header->length - (uint32_t)link_remote_buffers_bytes(world.link, header);
  if (header->type != WIRE_WINDOW || length < WIRE_MIN_LANDED_BYTES) {
    return;
  }
  uint32_t left = length - WIRE_MIN_LANDED_BYTES, words = fuzz_u8(input) % (left / 8 + 1);
  uint8_t *at = payload + WIRE_MIN_LANDED_BYTES;
  bytes_put_le32(payload, (left - 8 * words) / 4);
  bytes_put_le32(payload + 4, words);
  for (; at < payload + length - 8 * words; at += 4) {
    bytes_put_le32(at, fuzz_u8(input) % (world.config.policy.lanes + 1));
  }
  for (; at < payload + length; at += 8) {
    bytes_put_le64(at, fuzz_u8(input));
  }
}

static void payload_arrives(struct fuzz_input *input, unsigned lane) {
  uint8_t how = fuzz_u8(input);
  if (!world.is_arriving[lane]) {
    return;
  }
  uint8_t *payload = link_receive_buffer(world.link, lane);
  if (!payload && world.payload[lane] > 0) {
    close_lane(lane); /* as link.h asks */
    return;
  }
  uint32_t part = how & 1 ? world.payload[lane] : world.payload[lane] / 2;
  if (part > 0) {
    memset(payload, how, part);
  }
  if ((how & 2) && world.chunk[lane] > 0 && world.chunk[lane] <= CHUNK && part > 0) {
    uint32_t coded = code_chunk(how, world.chunk[lane], compressed_chunk);
    memcpy(payload, compressed_chunk, coded < part ? coded : part);
  }
  if (!(how & 1)) {
    return;
  }
  if (world.config.role == LINK_SENDER && part > 0) {
    fill_landed(input, lane, payload);
  }
  world.is_arriving[lane] = false;
  if (link_frame_completed(world.link, lane, world.now_ns) != 0) {
    close_lane(lane);
  }
}

static void write_frame(struct fuzz_input *input) {
  uint64_t writable = 0, mask = fuzz_u8(input);
  for (unsigned lane = 0; lane < world.config.policy.lanes; lane++) {
    bool can_write = world.open[lane] && !world.writing[lane].is_in_progress;
    writable |= can_write && (mask >> lane % 8 & 1) == 0 ? 1ull << lane : 0;
  }
  int lane = pick_lane(world.link, writable);
  if (lane < 0) {
    return;
  }
  FUZZ_CHECK((writable >> lane & 1) != 0);
  struct writing *writing = &world.writing[lane];
  if (next_frame(world.link, (unsigned)lane, &writing->frame, world.now_ns)) {
    struct wire_header header;
    if (writing->frame.wants_coding) {
      struct policy_encoded encoded = link_encode(world.link, (unsigned)lane, &writing->frame);
      link_encoded(world.link, &encoded);
    }
    FUZZ_CHECK(wire_header_decode(writing->frame.header, &header) == 0);
    /* What is placed is cut larger, and may have to go as a stream when its lane is lost. */
    uint32_t most = CHUNK * (world.config.remote_keys ? STRIPE_PLACED_CHUNKS * 3 / 2 : 1);
    FUZZ_CHECK(wire_stream_bytes(&header) == writing->frame.length && header.length <= most);
    FUZZ_CHECK(writing->frame.remote_buffer == NULL ||
               writing->frame.offset + header.length <= writing->frame.remote_buffer->bytes);
    writing->is_in_progress = true;
  }
}

static void frame_written(unsigned lane) {
  if (world.writing[lane].is_in_progress) {
    check_frame_buffers();
    world.writing[lane].is_in_progress = false;
    link_frame_taken(world.link, lane, world.now_ns);
  }
}

static void time_passes(struct fuzz_input *input) {
  uint8_t how = fuzz_u8(input);
  uint64_t deadline_ns = link_next_deadline_ns(world.link);
  uint64_t later_ns = world.now_ns + ((uint64_t)how << how % 30);
  bool is_due = how < 64 && deadline_ns != LINK_NO_DEADLINE && deadline_ns > world.now_ns;
  world.now_ns = is_due ? deadline_ns : later_ns;
  link_time_passed(world.link, world.now_ns);
  uint64_t asked = link_wants_measured(world.link, world.now_ns);
  for (unsigned lane = 0; lane < world.config.policy.lanes; lane++) {
    struct policy_transport transport = { .has_unacked = true,
                                          .is_repairing = how % 4 == 0,
                                          .acked_bytes = how % 8 == 1 ? how : 0 };
    if ((asked >> lane & 1) != 0) {
      link_lane_measured(world.link, lane, &transport, world.now_ns);
    }
  }
}

/* ---- the program ---- */

static void step(struct fuzz_input *input) {
  uint8_t code = fuzz_u8(input);
  unsigned lane = (unsigned)(code >> 4) % world.config.policy.lanes;
  switch (code & 15) {
  case 0:
  case 1:
    post(input);
    break;
  case 2:
  case 3:
    lane_up(input, lane);
    break;
  case 4:
    lane_lost(input, lane);
    break;
  case 5:
  case 6:
    frame_begins(input, lane);
    break;
  case 7:
    payload_arrives(input, lane);
    break;
  case 8:
  case 9:
    write_frame(input);
    break;
  case 10:
    frame_written(lane);
    break;
  case 11:
    time_passes(input);
    break;
  case 12:
    frame_begins(input, lane);
    payload_arrives(input, lane);
    break;
  case 13:
    write_frame(input);
    frame_written(lane);
    break;
  default:
    if (code == 0xee) {
      detach();
    } else if (code == 0xff) {
      link_fail(world.link, -EIO);
    }
  }
  carry_out_orders();
  take_completions();
  link_check(world.link);
  check_frame_buffers();
  FUZZ_CHECK(link_next_deadline_ns(world.link) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  uint8_t shape = fuzz_u8(&input);
  memset(&world, 0, sizeof world);
  world.now_ns = 1;
  world.config = (struct link_config){
    .role = shape & 1 ? LINK_SENDER : LINK_RECEIVER,
    .policy = { .lanes = 1 + (shape >> 1 & 3),
                .chunk_bytes = CHUNK,
                .compress = (shape >> 5 & 3) == 3 ? POLICY_COMPRESS_ON : POLICY_COMPRESS_OFF },
    .eager_bytes = shape & 8 ? 4096 : 0,
    .eager_slots = shape & 8 ? 8 : 0,
    .timeout_ns = 1000000000,
    .seed = shape,
    .wants_checksums = (shape & 16) != 0,
    .remote_keys = (shape >> 5 & 3) % 3,
    .coding_memory = coding_memory_get,
    .coding_owner = &lent,
  };
  lent.refused = size; /* some inputs have lanes without */
  world.link = link_init(fuzz_link_memory(&world.config), &world.config, world.now_ns);
  carry_out_orders();
  for (unsigned i = 0; i < STEPS_MAX && input.left > 0; i++) {
    step(&input);
  }
  struct link_view view;
  link_view(world.link, &view);
  FUZZ_CHECK(view.completed <= view.posted || world.is_detached);
  free_buffers();
  coding_memory_free(&lent);
  return 0;
}
