/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of messages: order of completion, copies, bounce buffers, and what a peer may not do. */
#include "net_plugin/link/message.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"

#define EAGER 64u
#define SLOTS 4u
#define STRIDE 64u

#define COPIES 4u /* that have room */

static uint8_t memory[LINK_WINDOW * STRIDE];
static uint8_t user[2][4096];
static struct outgoing_ring out;
static struct incoming_ring in;

static int set_up(void **state) {
  (void)state;
  outgoing_init(&out, EAGER, memory, COPIES * EAGER);
  incoming_init(&in, EAGER, SLOTS, memory, STRIDE);
  memset(user, 0, sizeof user);
  return 0;
}

/* ---- sender ---- */

UNIT_TEST_WITH(small_messages_complete_when_written, set_up, NULL) {
  uint64_t completion;
  memset(user[0], 'a', EAGER);
  assert_int_equal(outgoing_post(&out, user[0], EAGER, true), 0);
  memset(user[0], 'b', EAGER); /* the copy is ours, the memory the user's again */
  assert_false(outgoing_next_completion(&out, &completion));
  struct chunk chunk = outgoing_cut(&out, EAGER);
  assert_int_equal(outgoing_of(&out, chunk)->data[EAGER - 1], 'a');
  assert_false(outgoing_next_completion(&out, &completion));
  outgoing_written(&out, chunk);
  assert_true(outgoing_next_completion(&out, &completion));
  assert_true(completion == EAGER);
  assert_false(outgoing_next_completion(&out, &completion));
}

UNIT_TEST_WITH(a_copy_in_pieces_completes_with_the_last, set_up, NULL) {
  uint64_t completion;
  assert_int_equal(outgoing_post(&out, user[0], EAGER, true), 0);
  struct chunk first = outgoing_cut(&out, EAGER / 2);
  outgoing_written(&out, first);
  assert_false(outgoing_next_completion(&out, &completion));
  struct chunk last = outgoing_cut(&out, EAGER / 2);
  assert_false(outgoing_next_completion(&out, &completion));
  outgoing_written(&out, last);
  assert_true(outgoing_next_completion(&out, &completion));
  outgoing_acked(&out, first);
  assert_true(out.retired == 0);
  outgoing_acked(&out, last);
  assert_true(out.retired == 1);
}

/* Copies of odd sizes, acknowledged late: each is where no other is, or was not made. */
UNIT_TEST_WITH(copies_need_room, set_up, NULL) {
  struct chunk chunks[8];
  unsigned copied = 0;
  for (unsigned round = 0; round < 50; round++) {
    for (unsigned i = 0; i < 8; i++) {
      memset(user[0], (int)('a' + i), EAGER);
      assert_int_equal(outgoing_post(&out, user[0], EAGER - i * 7, i != 3), 0);
      chunks[i] = outgoing_cut(&out, EAGER - i * 7);
      const struct outgoing *message = outgoing_of(&out, chunks[i]);
      assert_true(message->is_copied == (message->data != user[0]));
      assert_true(i != 3 || !message->is_copied);
      copied += message->is_copied;
    }
    for (unsigned i = 0; i < 8; i++) {
      const struct outgoing *message = outgoing_of(&out, chunks[i]);
      for (unsigned at = 0; message->is_copied && at < message->bytes; at++) {
        assert_int_equal(message->data[at], 'a' + i);
      }
    }
    for (unsigned i = 0; i < 8; i++) {
      outgoing_acked(&out, chunks[i]);
    }
    uint64_t completion;
    while (outgoing_next_completion(&out, &completion)) {
    }
  }
  assert_in_range(copied, 50 * 3, 50 * 7);
}

UNIT_TEST_WITH(large_messages_complete_in_order, set_up, NULL) {
  uint64_t completion;
  assert_int_equal(outgoing_post(&out, user[0], 200, true), 0);
  assert_int_equal(outgoing_post(&out, user[0], 8, true), 0);
  assert_int_equal(outgoing_post(&out, user[0], 300, true), 0);
  struct chunk first = outgoing_cut(&out, 100), second = outgoing_cut(&out, 100);
  struct chunk small = outgoing_cut(&out, 8), last = outgoing_cut(&out, 300);
  assert_null(outgoing_cutting(&out));
  outgoing_acked(&out, last);
  outgoing_acked(&out, small);
  outgoing_acked(&out, first);
  assert_false(outgoing_next_completion(&out, &completion));
  outgoing_acked(&out, second);
  static const uint64_t sizes[] = { 200, 8, 300 };
  for (int i = 0; i < 3; i++) {
    assert_true(outgoing_next_completion(&out, &completion));
    assert_true(completion == sizes[i]);
  }
  assert_true(out.retired == 3);
}

UNIT_TEST_WITH(the_window_is_limited, set_up, NULL) {
  uint64_t completion;
  struct chunk first = { 0 };
  for (int i = 0; i < LINK_WINDOW; i++) {
    assert_int_equal(outgoing_post(&out, user[0], 0, true), 0);
    first = i == 0 ? outgoing_cut(&out, 0) : first;
    if (i > 0) {
      outgoing_cut(&out, 0);
    }
    outgoing_written(&out, first);
    assert_true(outgoing_next_completion(&out, &completion));
  }
  assert_int_equal(outgoing_post(&out, user[0], 0, true), -EAGAIN); /* complete, not acknowledged */
  outgoing_acked(&out, first);
  assert_int_equal(outgoing_post(&out, user[0], 0, true), 0);
  assert_int_equal(outgoing_post(&out, user[0], 0, true), -EAGAIN);
}

UNIT_TEST_WITH(truncation_forgets_what_is_the_users, set_up, NULL) {
  assert_int_equal(outgoing_post(&out, user[0], 8, true), 0);
  assert_int_equal(outgoing_post(&out, user[0], 200, true), 0);
  assert_int_equal(outgoing_post(&out, user[0], 8, true), 0);
  struct chunk small = outgoing_cut(&out, 8), large = outgoing_cut(&out, 100);
  outgoing_truncate(&out);
  assert_true(outgoing_is_live(&out, small));
  assert_false(outgoing_is_live(&out, large));
  assert_null(outgoing_cutting(&out));
  outgoing_acked(&out, small);
  assert_true(out.retired == out.posted);
}

/* ---- receiver ---- */

static struct wire_header data(uint64_t message, uint64_t offset, uint32_t length, uint64_t total) {
  return (struct wire_header){
    .type = WIRE_DATA,
    .length = length,
    .message = message,
    .offset = offset,
    .total = total,
  };
}

static int arrive(struct wire_header header, uint8_t fill) {
  uint8_t *buffer;
  bool is_bounced;
  int result = incoming_begin(&in, &header, &buffer, &is_bounced);
  if (result != 0) {
    return result;
  }
  if (header.length > 0) {
    memset(buffer, fill, header.length);
  }
  return incoming_end(&in, &header, is_bounced);
}

UNIT_TEST_WITH(posted_receives_are_filled_in_place, set_up, NULL) {
  uint64_t completion;
  assert_int_equal(incoming_post(&in, user[0], 1000), 0);
  assert_int_equal(incoming_post(&in, user[1], 1000), 0);
  assert_true(in.granted == 2);
  assert_int_equal(arrive(data(1, 0, 10, 10), 'b'), 0);
  assert_false(incoming_next_completion(&in, &completion));
  assert_int_equal(arrive(data(0, 400, 500, 900), 'y'), 0);
  assert_int_equal(arrive(data(0, 0, 400, 900), 'x'), 0);
  assert_true(incoming_next_completion(&in, &completion));
  assert_true(completion == 900);
  assert_int_equal(user[0][399], 'x');
  assert_int_equal(user[0][400], 'y');
  assert_true(incoming_next_completion(&in, &completion));
  assert_true(completion == 10);
}

UNIT_TEST_WITH(early_messages_bounce, set_up, NULL) {
  uint64_t completion;
  for (unsigned i = 0; i < SLOTS; i++) {
    assert_int_equal(arrive(data(i, 0, 8, 8), (uint8_t)('a' + i)), 0);
  }
  assert_true(incoming_landed(&in) == SLOTS);
  assert_int_equal(arrive(data(SLOTS, 0, 8, 8), 'z'), -EPROTO); /* beyond the slots */
  assert_int_equal(incoming_post(&in, user[0], 8), 0);
  assert_int_equal(user[0][7], 'a');
  assert_true(in.granted == 1);
  assert_true(incoming_next_completion(&in, &completion));
  assert_int_equal(arrive(data(SLOTS, 0, 8, 8), 'e'), 0); /* the slot is free again */
}

UNIT_TEST_WITH(an_early_message_in_parts_bounces_whole, set_up, NULL) {
  uint64_t completion;
  assert_int_equal(arrive(data(0, 4, 4, 8), 'b'), 0);
  assert_true(incoming_landed(&in) == 0);
  assert_int_equal(arrive(data(0, 0, 4, 9), 'a'), -EPROTO); /* another size */
  assert_int_equal(arrive(data(0, 0, 5, 8), 'a'), -EPROTO); /* more than there is */
  assert_int_equal(incoming_post(&in, user[0], 8), 0);
  assert_true(in.granted == 0);
  assert_int_equal(arrive(data(0, 0, 4, 8), 'a'), 0); /* joins its other half */
  assert_true(incoming_has_landed(&in, 0));
  assert_memory_equal(user[0], "aaaabbbb", 8);
  assert_true(incoming_next_completion(&in, &completion));
  assert_true(in.granted == 1);
}

UNIT_TEST_WITH(nothing_is_granted_behind_an_arriving_bounce, set_up, NULL) {
  uint64_t completion;
  struct wire_header header = data(0, 0, 8, 8);
  uint8_t *buffer;
  bool is_bounced;
  assert_int_equal(incoming_begin(&in, &header, &buffer, &is_bounced), 0);
  assert_true(is_bounced);
  assert_int_equal(incoming_post(&in, user[0], 8), 0);
  assert_int_equal(incoming_post(&in, user[1], 8), 0);
  assert_true(in.granted == 0);
  memset(buffer, 'q', 8);
  assert_int_equal(incoming_end(&in, &header, is_bounced), 0);
  assert_true(in.granted == 2);
  assert_true(incoming_next_completion(&in, &completion));
  assert_int_equal(user[0][0], 'q');
}

UNIT_TEST_WITH(a_dropped_bounce_frees_its_slot, set_up, NULL) {
  struct wire_header header = data(0, 0, 8, 8);
  uint8_t *buffer;
  bool is_bounced;
  assert_int_equal(incoming_begin(&in, &header, &buffer, &is_bounced), 0);
  assert_int_equal(incoming_post(&in, user[0], 8), 0);
  incoming_drop(&in, &header, is_bounced);
  assert_true(in.granted == 1);
  assert_int_equal(arrive(header, 'r'), 0); /* sent again, straight to the user */
  assert_int_equal(user[0][0], 'r');
}

UNIT_TEST_WITH(a_dropped_frame_counts_for_nothing, set_up, NULL) {
  struct wire_header header = data(0, 0, 500, 1000);
  uint8_t *buffer;
  bool is_bounced;
  assert_int_equal(incoming_post(&in, user[0], 1000), 0);
  assert_int_equal(incoming_begin(&in, &header, &buffer, &is_bounced), 0);
  incoming_drop(&in, &header, is_bounced);
  assert_int_equal(arrive(header, 'a'), 0);
  assert_int_equal(arrive(data(0, 500, 500, 1000), 'b'), 0);
  assert_true(in.completed == 1);
}

UNIT_TEST_WITH(rule_breakers_are_refused, set_up, NULL) {
  assert_int_equal(arrive(data(0, 0, EAGER + 1, EAGER + 1), 0), -EPROTO); /* no credit */
  assert_int_equal(arrive(data(UINT64_MAX, 0, 8, 8), 0), -EPROTO);
  assert_int_equal(arrive(data(1, 0, 8, 8), 'x'), 0);
  assert_int_equal(arrive(data(1, 0, 8, 8), 'x'), -EPROTO); /* twice, bounced */
  assert_int_equal(incoming_post(&in, user[0], 1000), 0);
  assert_int_equal(arrive(data(0, 0, 1000, 1001), 0), -EMSGSIZE);
  assert_int_equal(arrive(data(0, 0, 500, 1000), 0), 0);
  assert_int_equal(arrive(data(0, 500, 100, 900), 0), -EPROTO); /* another size */
  assert_int_equal(arrive(data(0, 0, 501, 1000), 0), -EPROTO);  /* more than there is */
  assert_int_equal(arrive(data(0, 500, 500, 1000), 0), 0);
  assert_int_equal(arrive(data(0, 0, 500, 1000), 0), -EPROTO); /* twice */
  assert_int_equal(incoming_post(&in, user[1], 7), -EMSGSIZE); /* message 1 has 8 */
}

UNIT_TEST_WITH(empty_messages_are_messages, set_up, NULL) {
  uint64_t completion;
  assert_int_equal(arrive(data(1, 0, 0, 0), 0), 0);
  assert_int_equal(incoming_post(&in, NULL, 0), 0);
  assert_int_equal(incoming_post(&in, NULL, 0), 0);
  assert_false(incoming_next_completion(&in, &completion));
  assert_int_equal(arrive(data(0, 0, 0, 0), 0), 0);
  assert_true(incoming_next_completion(&in, &completion));
  assert_true(incoming_next_completion(&in, &completion));
  assert_true(completion == 0);
}

UNIT_MAIN(NULL, NULL)
