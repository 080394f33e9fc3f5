/* SPDX-License-Identifier: Apache-2.0 */
/* addresses: in a handle that has no room for all, in the reply that lists them; and that
 * devices of many NICs use every one. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/connection/connection_state.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

/* One address for each letter of the text, '4' or '6', all different. */
static unsigned make_list(const char *families, struct sockaddr_storage *list) {
  unsigned count = 0;
  for (; families[count]; count++) {
    struct sockaddr_in *in = (struct sockaddr_in *)&list[count];
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&list[count];
    memset(&list[count], 0, sizeof list[count]);
    if (families[count] == '6') {
      in6->sin6_family = AF_INET6;
      in6->sin6_port = htons((uint16_t)(40000 + count));
      memset(&in6->sin6_addr, (int)(0xe0 + count), sizeof in6->sin6_addr);
    } else {
      in->sin_family = AF_INET;
      in->sin_port = htons((uint16_t)(40000 + count));
      in->sin_addr.s_addr = htonl(0x0a4d0001 + (count << 8));
    }
  }
  return count;
}

/* In their order; whoever talks one family finds one to dial. */
UNIT_TEST(a_handle_tells_of_each_family) {
  static const struct {
    const char *all, *told;
  } cases[] = { { "4", "0" },        { "4444", "0123" },     { "6666", "0123" },
                { "66666", "0123" }, { "66666664", "0127" }, { "66664444", "0124" },
                { "466", "012" },    { "46666666", "0123" }, { "44444446", "0127" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct handle handle = { .count = 0 }, got;
    uint8_t bytes[HANDLE_BYTES];
    handle.count = make_list(cases[i].all, handle.addresses);
    handle.advertised = 0xa6; /* of all eight, some */
    assert_int_equal(handle_encode(&handle, bytes), strlen(cases[i].told));
    assert_int_equal(handle_decode(bytes, &got), 0);
    assert_int_equal(got.count, strlen(cases[i].told));
    for (unsigned k = 0; k < got.count; k++) {
      assert_memory_equal(&got.addresses[k], &handle.addresses[cases[i].told[k] - '0'],
                          sizeof got.addresses[k]);
      assert_int_equal(got.advertised >> k & 1, 0xa6 >> (cases[i].told[k] - '0') & 1);
    }
    assert_int_equal(got.advertised >> got.count, 0);
  }
}

UNIT_TEST(a_reply_brings_all_of_them) {
  for (unsigned count = 0; count <= ADDRESSES_MAX; count++) {
    struct sockaddr_storage list[ADDRESSES_MAX], got_list[ADDRESSES_MAX];
    union handshake_message said = { .reply.params = { .lanes = 8, .chunk_bytes = 131072 } };
    make_list("66666644", list);
    for (unsigned i = 0; i < count; i++) {
      address_to_wire(&list[i], &said.reply.addresses[i]);
    }
    handshake_finish(&said, HANDSHAKE_REPLY);
    assert_int_equal(handshake_check(&said, HANDSHAKE_REPLY), 0);
    assert_int_equal(addresses_of_reply(&said.reply, got_list), count);
    assert_memory_equal(got_list, list, count * sizeof list[0]);
  }
}

/* ---- devices ---- */

static bool has_ipv6(void) {
  struct sockaddr_in6 loopback = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool is_there = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
  if (fd >= 0) {
    close(fd);
  }
  return is_there;
}

/* NICs by name only: all are the loopback interface. Both sides of one process share the ports of
 * NICs of one name and address. */
static unsigned make_nics(const char *families, struct nic *nics) {
  unsigned count = 0;
  if (strchr(families, '6') && !has_ipv6()) {
    SKIP_BECAUSE("no address ::1, as IPv6 is off: sysctl net.ipv6.conf.lo.disable_ipv6=0");
  }
  for (; families[count]; count++) {
    nics[count] = pair_loopback(families[count] == '6' ? AF_INET6 : AF_INET);
    snprintf(nics[count].name, sizeof nics[count].name, "nic%u", count);
  }
  return count;
}

/* Both families may have the same number: even ones are IPv4's. */
enum { PORTS = 2 * 65536 };

static unsigned port_of(const struct sockaddr_storage *address) {
  return 2u * tcp_address_port(address) + (address->ss_family == AF_INET6);
}

/* At how many of the peer's ports the sender's lanes end. */
static unsigned count_reached(struct connection *sender) {
  static bool is_reached[PORTS];
  unsigned count = 0;
  memset(is_reached, 0, sizeof is_reached);
  engine_lock(sender->engine);
  for (uint64_t lanes = sender->opened; lanes != 0; lanes &= lanes - 1) {
    const struct lane *lane = sender->slots[__builtin_ctzll(lanes)].lane;
    struct lane_stats stats;
    lane->ops->stats(lane, &stats);
    count += !is_reached[port_of(&stats.remote)];
    is_reached[port_of(&stats.remote)] = true;
  }
  engine_unlock(sender->engine);
  return count;
}

/* Connects them and sends messages until each of the peer's NICs has a flow. */
static void all_are_used(const char *ours, const char *theirs) {
  static const size_t sizes[] = { 1048576 };
  struct nic from[ADDRESSES_MAX], to[ADDRESSES_MAX];
  unsigned from_count = make_nics(ours, from), to_count = make_nics(theirs, to);
  struct meeting meeting = meeting_open_nics(to, to_count);
  memcpy(meeting.nics, from, from_count * sizeof *from);
  meeting.nic_count = from_count;
  struct pair pair = meeting_pair(&meeting);
  UNTIL(count_reached(pair.sender) == to_count) {
    pair_exchange(pair, sizes, 1, 16, NULL);
  }
  pair_close(pair);
  meeting_close(&meeting);
  setup_stop();
}

UNIT_TEST_WITH(every_nic_of_a_device_is_used, pair_set_up, pair_tear_down) {
  all_are_used("666666", "666666");
  all_are_used("66666666", "66666666");
  all_are_used("6", "66666666");
  all_are_used("44444444", "44444444");
}

UNIT_TEST_WITH(families_may_be_mixed, pair_set_up, pair_tear_down) {
  all_are_used("66666444", "66666444");
  all_are_used("46", "46666666");
}

/* ---- the handshake, spoken by hand ---- */

/* The reply to its hello; the socket stays open, as a lane. */
static struct reply ask(struct by_hand_caller *caller) {
  by_hand_greet(caller);
  by_hand_take_challenge(caller);
  by_hand_prove(caller);
  struct reply reply = by_hand_reply(caller), forged = reply;
  /* They are among what the proof covers. */
  forged.addresses[0].ip[0] ^= 1;
  assert_false(auth_is_genuine(&caller->keys, &caller->transcript, &forged));
  assert_int_equal(reply.status, REPLY_ACCEPTED);
  return reply;
}

UNIT_TEST_WITH(the_first_hello_is_told_also_when_it_comes_again, pair_set_up, pair_tear_down) {
  struct nic nics[ADDRESSES_MAX];
  struct sockaddr_storage list[ADDRESSES_MAX], again[ADDRESSES_MAX];
  int fds[3];
  struct meeting meeting = meeting_open_nics(nics, make_nics("666666", nics));
  struct by_hand_caller caller = by_hand_caller(&meeting.handle, NULL);
  struct reply reply = ask(&caller);
  fds[0] = caller.fd;
  assert_int_equal(addresses_of_reply(&reply, list), 6);
  for (unsigned i = 0; i < 6; i++) {
    for (unsigned k = 0; k < i; k++) {
      assert_int_not_equal(port_of(&list[i]), port_of(&list[k]));
    }
  }
  assert_memory_equal(&list[0], &caller.to, sizeof caller.to);
  meeting_accept(&meeting);
  assert_non_null(meeting.pair.receiver);
  meeting_close(&meeting);
  /* The caller did not get the answer. */
  caller.hello.epoch = 2;
  reply = ask(&caller);
  fds[1] = caller.fd;
  assert_int_equal(addresses_of_reply(&reply, again), 6);
  assert_memory_equal(again, list, 6 * sizeof list[0]);
  /* Another lane has no use for them. */
  caller.hello.is_first = 0;
  caller.hello.lane = 1;
  reply = ask(&caller);
  fds[2] = caller.fd;
  assert_int_equal(addresses_of_reply(&reply, again), 0);
  connection_detach(meeting.pair.receiver);
  for (int i = 0; i < 3; i++) {
    close(fds[i]);
  }
}

UNIT_TEST_WITH(what_the_handle_tells_is_not_said_twice, pair_set_up, pair_tear_down) {
  const char *const devices[] = { "6", "4466", "6666" };
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    struct nic nics[ADDRESSES_MAX];
    struct sockaddr_storage list[ADDRESSES_MAX];
    struct meeting meeting = meeting_open_nics(nics, make_nics(devices[i], nics));
    struct by_hand_caller caller = by_hand_caller(&meeting.handle, NULL);
    struct reply reply = ask(&caller);
    assert_int_equal(addresses_of_reply(&reply, list), 0);
    meeting_close(&meeting);
    close(caller.fd);
    setup_stop();
  }
}
