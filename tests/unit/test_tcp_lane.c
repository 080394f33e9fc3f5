/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving end of a TCP lane over loopback: what is waited for is taken before it is read, and
 * read later, once; whatever comes in whatever pieces, each byte counts once. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/lane/tcp/tcp_lane.h"
#include "net_plugin/link/wire.h"
#include "tests/lib/link_parts.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { LARGEST = 4096, FRAME_MAX = WIRE_HEADER_BYTES + LARGEST, WAIT_MS = 10000 };

static struct link *link_under_test;
static struct lane *lane;
static int peer_fd;
static uint8_t received[LARGEST], frame[FRAME_MAX];
static uint64_t sent; /* messages */

static struct link *make_receiver(uint32_t chunk_bytes) {
  struct link_config config = {
    .role = LINK_RECEIVER,
    .policy = { .lanes = 1, .chunk_bytes = chunk_bytes },
    .eager_bytes = LARGEST,
    .eager_slots = 4,
    .timeout_ns = 1000000000,
    .seed = 1,
  };
  struct link *link = link_init(calloc(1, link_memory_bytes(&config)), &config, 1);
  link_lane_fence(link, 0, 1, 1);
  link_lane_up(link, 0, 1, 1);
  return link;
}

static int set_up(void **state) {
  int fds[2], one = 1;
  sent = 0;
  pair_sockets(fds);
  peer_fd = fds[0];
  setsockopt(peer_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  link_under_test = make_receiver(LARGEST);
  lane = tcp_lane_open(link_under_test, 0, 1, fds[1], NULL);
  return 0;
}

static int tear_down(void **state) {
  lane->ops->fini(lane);
  close(peer_fd);
  link_end(link_under_test);
  free(link_under_test);
  return 0;
}

/* The next message, for which a receive is posted; returns the bytes of its frame. */
static size_t make_message(size_t bytes) {
  struct wire_header header = {
    .type = WIRE_DATA,
    .length = (uint32_t)bytes,
    .message = sent,
    .total = bytes,
    .number = sent,
  };
  wire_header_encode(&header, frame);
  for (size_t i = 0; i < bytes; i++) {
    frame[WIRE_HEADER_BYTES + i] = (uint8_t)(sent + 7 * i);
  }
  assert_int_equal(link_receive_posted(link_under_test, received, bytes, NULL, 1), 0);
  sent++;
  return WIRE_HEADER_BYTES + bytes;
}

static int unread(void) {
  int bytes = -1;
  assert_int_equal(ioctl(lane->fd, FIONREAD, &bytes), 0);
  return bytes;
}

/* All of it is there to be read when this returns. */
static void send_bytes(const uint8_t *bytes, size_t count) {
  int before = unread();
  assert_int_equal(send(peer_fd, bytes, count, 0), count);
  for (int ms = 0; unread() != before + (int)count; ms++) {
    assert_true(ms < WAIT_MS);
    poll(NULL, 0, 1);
  }
}

static size_t read_lane(bool is_polled) {
  size_t got = SIZE_MAX;
  lane->is_polled = is_polled;
  assert_int_equal(lane->ops->read(lane, 1, &got), 0);
  return got;
}

static void assert_arrived(size_t bytes) {
  uint64_t completion;
  assert_true(link_next_completion(link_under_test, &completion));
  assert_int_equal(completion, bytes);
  assert_memory_equal(received, frame + WIRE_HEADER_BYTES, bytes);
  memset(received, 0, sizeof received);
}

UNIT_TEST_WITH(what_is_polled_is_taken_first_and_read_later, set_up, tear_down) {
  for (int i = 0; i < 3; i++) {
    assert_int_equal(read_lane(true), 0);
    size_t length = make_message(8);
    send_bytes(frame, length);
    assert_int_equal(read_lane(true), length);
    assert_arrived(8);
    assert_int_equal(unread(), length);
    assert_int_equal(read_lane(true), 0);
    assert_int_equal(unread(), 0);
  }
  struct lane_stats stats;
  lane->ops->stats(lane, &stats);
  assert_int_equal(stats.bytes_read, 3 * (WIRE_HEADER_BYTES + 8));
}

/* Cut anywhere, the second part coming before or after the first one is read. */
UNIT_TEST_WITH(messages_arrive_in_any_two_pieces, set_up, tear_down) {
  for (size_t cut = 1; cut < WIRE_HEADER_BYTES + 24; cut++) {
    for (int is_late = 0; is_late < 2; is_late++) {
      size_t length = make_message(24);
      assert_int_equal(read_lane(true), 0);
      send_bytes(frame, cut);
      assert_int_equal(read_lane(true), cut);
      assert_int_equal(unread(), cut);
      if (is_late) {
        assert_int_equal(read_lane(true), 0);
        assert_int_equal(unread(), 0);
      }
      send_bytes(frame + cut, length - cut);
      assert_int_equal(read_lane(true), length - cut);
      assert_arrived(24);
      read_lane(true);
      assert_int_equal(unread(), 0);
    }
  }
}

UNIT_TEST_WITH(the_end_is_seen_behind_what_was_taken, set_up, tear_down) {
  size_t got;
  assert_int_equal(read_lane(true), 0);
  send_bytes(frame, make_message(8));
  shutdown(peer_fd, SHUT_WR);
  assert_int_equal(read_lane(true), WIRE_HEADER_BYTES + 8);
  assert_arrived(8);
  assert_int_equal(lane->ops->read(lane, 1, &got), -EPIPE);
}

UNIT_TEST_WITH(what_is_no_frame_breaks_the_lane, set_up, tear_down) {
  size_t got, length = make_message(8);
  frame[0] ^= 1;
  send_bytes(frame, length);
  assert_true(lane->ops->read(lane, 1, &got) < 0);
}

/* ---- writing ---- */

enum { LARGE = 512 << 10, SMALL_BUFFER = 16 << 10 };

/* The lane has taken a part of the frame, and reads the rest from the second place. */
static void move_in_the_middle(struct lane *writer, struct lane *reader, const uint8_t *second) {
  struct link_frame written = { .length = LARGE };
  struct wire_header header = { .type = WIRE_DATA, .length = LARGE, .total = LARGE };
  uint8_t *first = malloc(LARGE), *in = calloc(1, LARGE);
  memcpy(first, second, LARGE);
  wire_header_encode(&header, written.header);
  written.payload = first;
  assert_int_equal(link_receive_posted(reader->link, in, LARGE, NULL, 1), 0);
  assert_int_equal(writer->ops->write(writer, &written), 0);
  assert_true(writer->has_unwritten && !writer->can_write);
  writer->ops->move(writer, second);
  free(first);
  uint64_t completion = 0;
  for (int ms = 0; !link_next_completion(reader->link, &completion); ms++) {
    size_t got;
    assert_true(ms < WAIT_MS);
    assert_int_equal(writer->ops->resume(writer), 0);
    assert_int_equal(reader->ops->read(reader, 1, &got), 0);
    poll(NULL, 0, got > 0 ? 0 : 1);
  }
  assert_memory_equal(in, second, LARGE);
  struct pollfd room = { .fd = writer->fd, .events = POLLOUT };
  assert_int_equal(poll(&room, 1, WAIT_MS), 1);
  written = (struct link_frame){ .length = 0 };
  assert_int_equal(writer->ops->write(writer, &written), 0);
  assert_true(writer->can_write && !writer->has_unwritten);
  free(in);
}

UNIT_TEST(a_payload_may_move_while_it_is_written) {
  uint8_t *payload = malloc(LARGE);
  for (size_t i = 0; i < LARGE; i++) {
    payload[i] = (uint8_t)(i * 7 + i / 253);
  }
  unsigned ciphers = lane_crypto_ciphers();
  struct lane_crypto crypto = { .cipher =
                                    ciphers != 0 ? (enum lane_cipher)__builtin_ctz(ciphers) : 0 };
  for (unsigned is_sealed = 0; is_sealed <= (ciphers != 0); is_sealed++) {
    int fds[2], bytes = SMALL_BUFFER;
    pair_sockets(fds);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    struct link *link = make_receiver(LARGE);
    struct lane *writer = tcp_lane_open(NULL, 0, 1, fds[0], is_sealed ? &crypto : NULL);
    struct lane *reader = tcp_lane_open(link, 0, 1, fds[1], is_sealed ? &crypto : NULL);
    move_in_the_middle(writer, reader, payload);
    writer->ops->fini(writer);
    reader->ops->fini(reader);
    link_end(link);
    free(link);
  }
  free(payload);
}
