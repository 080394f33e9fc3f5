/* SPDX-License-Identifier: Apache-2.0 */
/* acceptor: whom a flood of strangers evicts, by addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/acceptor.h"
#include "net_plugin/setup/limits.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

enum { FLOOD = PENDING_PEERS_MAX + 200 };

static struct nic nic;
static struct engine *engine;
static struct acceptor acceptor;
static int flood[FLOOD];

static int start(void **state) {
  pair_set_up(state);
  nic = pair_loopback(AF_INET);
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engine), 0);
  acceptor_init(&acceptor, engine, &nic);
  return 0;
}

static int come(const char *address) {
  struct sockaddr_in6 from = { .sin6_family = AF_INET6 };
  struct sockaddr_storage storage = { 0 };
  int ends[2];
  assert_int_equal(inet_pton(AF_INET6, address, &from.sin6_addr), 1);
  memcpy(&storage, &from, sizeof from);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  engine_lock(engine);
  acceptor_admit(&acceptor, ends[0], &storage, PENDING_PEERS_MAX);
  engine_unlock(engine);
  return ends[1];
}

static bool is_open(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void end(void) {
  engine_lock(engine);
  acceptor_close_all(&acceptor);
  engine_unlock(engine);
  for (int i = 0; i < FLOOD; i++) {
    assert_false(is_open(flood[i]));
    close(flood[i]);
  }
}

#define TEST(name) UNIT_TEST_WITH(name, start, pair_tear_down)

TEST(a_flood_leaves_others_of_its_network) {
  int honest = come("fd00::2");
  for (int i = 0; i < FLOOD; i++) {
    flood[i] = come("fd00::1");
  }
  assert_false(is_open(flood[FLOOD - PENDING_PEERS_MAX]));
  assert_true(is_open(honest));
  assert_false(is_open(flood[0]));
  assert_true(is_open(flood[FLOOD - 1]));
  end();
  assert_false(is_open(honest));
  close(honest);
}

/* Each from an address of its own, with its number between these two. The oldest go. */
static void flood_from(const char *before, const char *behind) {
  for (int i = 0; i < FLOOD; i++) {
    char address[INET6_ADDRSTRLEN];
    snprintf(address, sizeof address, "%s%x%s", before, i + 1, behind);
    flood[i] = come(address);
  }
  assert_false(is_open(flood[0]));
  assert_true(is_open(flood[FLOOD - 2]));
}

TEST(a_flood_of_many_addresses_leaves_other_networks) {
  int honest = come("fd00:0:0:1::2");
  int mapped = come("::ffff:10.0.0.1");
  flood_from("fd00::", "");
  assert_true(is_open(honest));
  assert_true(is_open(mapped));
  end();
  close(honest);
  close(mapped);
}

TEST(a_flood_of_many_networks_evicts_its_oldest) {
  flood_from("fd00:0:0:", "::");
  end();
}
