/* SPDX-License-Identifier: Apache-2.0 */
/* invariants: the two users, who believe nothing: each byte of each message is compared, buffers
 * are scribbled over the moment they are the user's again, and everything lent is freed on
 * detaching. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/link_check.h"
#include "tests/sim/world.h"

#define SENT_SCRIBBLE 0xDD
#define RECEIVED_SCRIBBLE 0xEE
#define UNTOUCHED 0xA5
/* As a connection has it, longer than what ends a link. */
#define LINGER_NS 600000000000ull
/* A word of numbers of 16 bits that the codec codes: what is noise in them, and what is not. */
#define FRACTION_BITS 0x81FF81FF81FF81FFull
#define EXPONENT_BITS 0x3E003E003E003E00ull
#define LINE_BYTES 128u /* of a message that is polled; its last word is the flag */
#define LINE_WORDS (LINE_BYTES / 8)

static const char *const side_names[] = { "sender", "receiver" };

/* ---- plan ---- */

static uint64_t plan_size(struct world *world, uint64_t most) {
  uint64_t eager = world->config[SENDER].eager_bytes;
  uint64_t chunk = world->config[SENDER].policy.chunk_bytes;
  uint64_t size = 0;
  switch (world_between(world, 0, 9)) {
  case 0:
    size = world_between(world, 0, 1);
    break;
  case 1:
  case 2:
    size = world_between(world, 0, 64);
    break;
  case 3:
    size = eager + world_between(world, 0, 2);
    size -= size > 0 ? 1 : 0;
    break;
  case 4:
    size = chunk * world_between(world, 1, 3) + world_between(world, 0, 2) - 1;
    break;
  case 5:
    size = world_between(world, 0, 2 * eager + 1);
    break;
  case 6:
  case 7:
    size = world_between(world, 0, 65536);
    break;
  default:
    size = world_between(world, 0, 1u << world_between(world, 1, 21));
    break;
  }
  return size < most ? size : most;
}

void users_plan(struct world *world) {
  uint64_t budget = 3u << 20;
  if (budget > world->buffer_bytes * 100ull) {
    budget = world->buffer_bytes * 100ull;
  }
  if (world->read_bytes < 100 && budget > world->read_bytes * 10000ull) {
    budget = world->read_bytes * 10000ull;
  }
  bool is_small = world_chance(world, 20);
  for (unsigned i = 0; i < world->message_count; i++) {
    struct message_plan *plan = &world->plans[i];
    uint64_t most = is_small ? world->config[SENDER].eager_bytes : budget;
    plan->bytes = world->is_bulk ? 1u << 20 : plan_size(world, most < budget ? most : budget);
    plan->is_polled = plan->bytes >= LINE_BYTES && world_chance(world, 20);
    plan->bytes -= plan->is_polled ? plan->bytes % LINE_BYTES : 0;
    plan->capacity = plan->bytes + (world_chance(world, 50) ? 0 : world_between(world, 0, 100));
    budget -= plan->bytes < budget ? plan->bytes : budget;
  }
}

/* ---- content ---- */

static uint64_t pattern_word(const struct world *world, unsigned message, uint64_t word) {
  if (world->plans[message].is_polled && word % LINE_WORDS == LINE_WORDS - 1) {
    return message + 1;
  }
  uint64_t noise = (world->seed + message * 0x9E3779B97F4A7C15ull) ^ (word * 0xD6E8FEB86659FD93ull);
  return world->is_codable ? (noise & FRACTION_BITS) | EXPONENT_BITS : noise;
}

static void pattern_fill(const struct world *world, unsigned message, uint8_t *to, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = pattern_word(world, message, at / 8);
    memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

/* The first byte, or the seven before it, that differs; `bytes` if none does. */
static uint64_t pattern_compare(const struct world *world, unsigned message, const uint8_t *from,
                                uint64_t bytes) {
  uint64_t at = 0, got;
  for (; bytes - at >= 8; at += 8) {
    memcpy(&got, from + at, 8);
    if (got != pattern_word(world, message, at / 8)) {
      return at;
    }
  }
  uint64_t word = pattern_word(world, message, at / 8);
  return memcmp(from + at, &word, bytes - at) == 0 ? bytes : at;
}

static void pattern_check(struct world *world, unsigned message, const uint8_t *from,
                          uint64_t bytes) {
  uint64_t at = pattern_compare(world, message, from, bytes);
  if (at < bytes) {
    world_fail(world, "message %u of %llu bytes is wrong at %llu", message,
               (unsigned long long)bytes, (unsigned long long)at);
  }
}

/* Are the bytes of the message with the receiver's user? */
static bool has_landed(const struct world *world, unsigned message) {
  const struct message_plan *plan = &world->plans[message];
  if (message < world->ends[RECEIVER].completed) {
    return true;
  }
  return plan->in != NULL ? pattern_compare(world, message, plan->in, plan->bytes) == plan->bytes
                          : plan->has_landed;
}

static void scribble_check(struct world *world, unsigned message, const uint8_t *from,
                           uint64_t bytes, uint8_t value) {
  for (uint64_t at = 0; at < bytes; at++) {
    if (from[at] != value) {
      world_fail(world, "byte %llu of message %u was written by nobody's leave",
                 (unsigned long long)at, message);
    }
  }
}

/* A receiver who polls takes a line for complete when its flag has come. One line of each message
 * is looked at per step. */
static void lines_check(struct world *world) {
  const struct end *end = &world->ends[RECEIVER];
  for (uint64_t i = end->completed; i < end->posted && !end->is_detached; i++) {
    const struct message_plan *plan = &world->plans[i];
    if (!plan->is_polled) {
      continue;
    }
    uint64_t word = world->steps % (plan->bytes / LINE_BYTES) * LINE_WORDS, last = LINE_WORDS - 1;
    uint64_t got[LINE_WORDS];
    memcpy(got, plan->in + word * 8, sizeof got);
    for (uint64_t at = 0; at < last && got[last] == i + 1; at++) {
      if (got[at] != pattern_word(world, (unsigned)i, word + at)) {
        world_fail(world, "message %u shows the flag of byte %llu before the data", (unsigned)i,
                   (unsigned long long)(word * 8));
      }
    }
  }
}

/* ---- posts and completions ---- */

static void user_completed(struct world *world, enum side side, uint64_t bytes) {
  struct end *end = &world->ends[side];
  unsigned message = (unsigned)end->completed++;
  struct message_plan *plan = &world->plans[message];
  if (end->completed > end->posted) {
    world_fail(world, "%s completes message %u, which it has not posted", side_names[side],
               message);
  }
  if (bytes != plan->bytes) {
    world_fail(world, "%s completes message %u with %llu bytes instead of %llu", side_names[side],
               message, (unsigned long long)bytes, (unsigned long long)plan->bytes);
  }
  if (side == SENDER) {
    if (bytes > world->config[SENDER].eager_bytes && !has_landed(world, message)) {
      world_fail(world, "message %u completes at the sender before it has landed", message);
    }
    memset(plan->out, SENT_SCRIBBLE, plan->bytes);
    return;
  }
  uint64_t waited_ns = world->now_ns - plan->posted_ns;
  bool is_late = waited_ns >= WORLD_LONG_WAIT_NS;
  world->totals->late += is_late;
  world->waited_ns += is_late ? WORLD_LONG_WAIT_NS : waited_ns;
  pattern_check(world, message, plan->in, plan->bytes);
  scribble_check(world, message, plan->in + plan->bytes, plan->capacity - plan->bytes, UNTOUCHED);
  memset(plan->in, RECEIVED_SCRIBBLE, plan->capacity);
}

static bool user_post(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  struct message_plan *plan = &world->plans[end->posted];
  int result;
  if (side == SENDER) {
    if (plan->out == NULL) {
      plan->out = malloc(plan->bytes);
      pattern_fill(world, (unsigned)end->posted, plan->out, plan->bytes);
    }
    result = link_send_posted(end->link, plan->out, plan->bytes, NULL, world_clock(world));
  } else {
    if (plan->in == NULL) {
      plan->in = malloc(plan->capacity);
      memset(plan->in, UNTOUCHED, plan->capacity);
    }
    struct wire_remote_buffer target = { (uintptr_t)plan->in, plan->capacity, { 1 } };
    bool has_target = world_chance(world, 90);
    result = link_receive_posted(end->link, plan->in, plan->capacity, has_target ? &target : NULL,
                                 world_clock(world));
  }
  if (result == 0) {
    plan->posted_ns = world->now_ns;
    end->posted++;
    end->next_post_ns = world->now_ns + world_between(world, 0, world->pause_ns[side]);
  } else if (result == -EAGAIN && end->posted - end->completed < LINK_WINDOW / 2 &&
             side == RECEIVER) {
    world_fail(world, "a half empty window is full");
  }
  return result == 0;
}

void users_check_lent(struct world *world, enum side side, const uint8_t *at, uint32_t bytes) {
  const struct end *end = &world->ends[side];
  const uint8_t *copies = (const uint8_t *)end->link;
  for (uint64_t i = end->completed; i < end->posted && !end->is_detached; i++) {
    const struct message_plan *plan = &world->plans[i];
    const uint8_t *lent = side == SENDER ? plan->out : plan->in;
    uint64_t lent_bytes = side == SENDER ? plan->bytes : plan->capacity;
    if (at >= lent && at + bytes <= lent + lent_bytes) {
      return;
    }
  }
  bool is_copy = at >= copies && at + bytes <= copies + link_memory_bytes(&world->config[side]);
  if (side == RECEIVER || !is_copy) {
    world_fail(world, "a NIC %s %u bytes that the user has not lent",
               side == SENDER ? "reads" : "writes", bytes);
  }
}

void users_detach(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  world_trace(world, "%s detaches, %llu of %u messages complete, status %d", side_names[side],
              (unsigned long long)end->completed, world->message_count, link_status(end->link));
  link_user_detached(end->link, world_clock(world));
  end->is_detached = true;
  end->linger_ns = world->now_ns + LINGER_NS;
  for (unsigned i = 0; i < world->message_count; i++) {
    struct message_plan *plan = &world->plans[i];
    if (side == SENDER) {
      free(plan->out);
      plan->out = NULL;
    } else if (plan->in != NULL) {
      plan->has_landed = has_landed(world, i);
      if (i < end->completed) {
        scribble_check(world, i, plan->in, plan->capacity, RECEIVED_SCRIBBLE);
      }
      free(plan->in);
      plan->in = NULL;
    }
  }
}

void users_completed(struct world *world, enum side side) {
  for (uint64_t bytes; link_next_completion(world->ends[side].link, &bytes);) {
    if (world->ends[side].is_detached) {
      world_fail(world, "%s completes after it has detached", side_names[side]);
    }
    user_completed(world, side, bytes);
  }
}

void users_run(struct world *world, enum side side) {
  struct end *end = &world->ends[side];
  if (end->is_detached) {
    return;
  }
  if (end->completed == world->message_count || link_status(end->link) != 0 ||
      world->now_ns >= world->detach_ns[side]) {
    users_detach(world, side);
    return;
  }
  while (end->posted < world->message_count && end->posted - end->completed < world->depth[side] &&
         world->now_ns >= end->next_post_ns && user_post(world, side)) {
  }
}

/* ---- invariants ---- */

/* Most of a step changes nothing, and the tallies of link_check are long: a sample of the steps. */
void invariants_check(struct world *world) {
  lines_check(world);
  if (world->lanes <= 8 || world->steps % 16 == 0) {
    link_check(world->ends[SENDER].link);
    link_check(world->ends[RECEIVER].link);
    link_check_both(world->ends[SENDER].link, world->ends[RECEIVER].link);
  }
}

/* Silence and missing lanes are for runs that ask for them, and for who was left alone by a peer
 * that had all it wanted. */
static void check_status(struct world *world, enum side side, bool is_excused) {
  int status = link_status(world->ends[side].link);
  bool is_alone =
      status == -ETIMEDOUT || status == -EHOSTDOWN || status == -ECONNABORTED || status == -ECOMM;
  if (status == 0 || (is_alone && (world->may_time_out || world->may_abort || is_excused)) ||
      (status == -ECONNRESET && world->may_reset) || (status == -EIO && world->may_abort)) {
    return;
  }
  world_fail(world, "%s ends with %s after %llu of %u messages", side_names[side],
             strerror(-status), (unsigned long long)world->ends[side].completed,
             world->message_count);
}

void invariants_check_end(struct world *world) {
  const struct end *sender = &world->ends[SENDER];
  const struct end *receiver = &world->ends[RECEIVER];
  bool is_whole = receiver->completed == world->message_count;
  /* The last acknowledgement and the BYE can be lost with the last lane; then the one who has all
   * is gone already, and nobody can tell the other. A sender with nothing to deliver does not dial
   * for a BYE alone. */
  bool is_excused = is_whole || world->may_reset;
  check_status(world, SENDER, is_excused);
  check_status(world, RECEIVER, is_excused);
  /* Whoever waited for the host that went down has given up in time; it may have been stopped
   * itself, and may have had to close first. */
  if (world->down_ns != 0 &&
      world->now_ns > world->down_ns + 4 * world->config[SENDER].timeout_ns) {
    world_fail(world, "the end comes %.3f ms after a host went down",
               (double)(world->now_ns - world->down_ns) / 1e6);
  }
  bool must_finish = !world->may_time_out && !world->may_reset && !world->may_abort;
  if (must_finish && !is_whole) {
    world_fail(world, "only %llu of %u messages arrived", (unsigned long long)receiver->completed,
               world->message_count);
  }
  /* What a sender copied and completed is delivered, even when it detaches. */
  if (!world->may_time_out && !world->may_abort && world->detach_ns[RECEIVER] == WORLD_NEVER &&
      receiver->completed < sender->completed && link_status(receiver->link) != -ETIMEDOUT &&
      link_status(receiver->link) != -EHOSTDOWN) {
    world_fail(world, "the sender completed %llu messages, the receiver got %llu",
               (unsigned long long)sender->completed, (unsigned long long)receiver->completed);
  }
  uint64_t landed = 0, planned = 0;
  for (unsigned lane = 0; lane < world->lanes; lane++) {
    struct link_lane_view view;
    link_view_lane(receiver->link, lane, &view);
    landed += view.counts.bytes_received;
  }
  for (unsigned i = 0; i < world->message_count; i++) {
    planned += world->plans[i].bytes;
  }
  if (is_whole && landed != planned) {
    world_fail(world, "%llu bytes landed instead of %llu", (unsigned long long)landed,
               (unsigned long long)planned);
  }
}
