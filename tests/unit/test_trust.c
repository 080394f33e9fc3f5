/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets in: the handshake of a lane, spoken by hand against a real listener, over loopback. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/pending_peer.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/lane_view.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

struct scene {
  struct nic nic;
  uint8_t bytes[HANDLE_BYTES];
  struct handle handle;
  struct listener *listener;
};

static void scene_open(struct scene *scene) {
  scene->nic = pair_loopback(AF_INET);
  assert_int_equal(listener_open(&scene->nic, 1, scene->bytes, &scene->listener), 0);
  assert_int_equal(handle_decode(scene->bytes, &scene->handle), 0);
}

/* The honest peer gets its connection, and data passes. */
static void scene_still_works(struct scene *scene) {
  struct pair pair = pair_connect(&scene->nic, scene->bytes, scene->listener);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  pair_close(pair);
}

static void nobody_got_in(struct scene *scene) {
  struct connection *connection;
  assert_int_equal(listener_accept(scene->listener, &connection), 0);
  assert_null(connection);
}

/* ---- a dialling side ---- */

struct caller {
  struct hello hello;
  struct auth_keys keys;
  uint8_t hello_bytes[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
  bool is_slow; /* in small pieces */
  int fd;
};

static void caller_init(struct caller *caller, const struct scene *scene, const uint8_t *job) {
  memset(caller, 0, sizeof *caller);
  by_hand_hello(&scene->handle, job, &caller->hello, &caller->keys);
}

static int dial_plainly(const struct sockaddr_storage *to, const char *from) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct sockaddr_in source = { .sin_family = AF_INET };
  source.sin_addr.s_addr = htonl(from[0] == '2' ? INADDR_LOOPBACK + 1 : INADDR_LOOPBACK);
  assert_int_equal(bind(fd, (struct sockaddr *)&source, sizeof source), 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)to, tcp_address_bytes(to)), 0);
  return fd;
}

/* Up to the challenge. */
static void caller_greet(struct caller *caller, const struct scene *scene) {
  hello_encode(&caller->hello, caller->hello_bytes);
  caller->fd = dial_plainly(&scene->handle.addresses[0], "1");
  by_hand_say(caller->fd, caller->hello_bytes, HELLO_BYTES, caller->is_slow);
  assert_int_equal(recv(caller->fd, caller->challenge, CHALLENGE_BYTES, MSG_WAITALL),
                   CHALLENGE_BYTES);
}

static void caller_prove(struct caller *caller) {
  struct proof proof = { .wire_version = HANDSHAKE_WIRE_VERSION };
  auth_prove(&caller->keys, caller->hello_bytes, caller->challenge, &proof);
  proof_encode(&proof, caller->proof);
  by_hand_say(caller->fd, caller->proof, PROOF_BYTES, caller->is_slow);
}

/* The status of a genuine reply. */
static unsigned caller_reply(struct caller *caller) {
  uint8_t bytes[REPLY_BYTES];
  struct reply reply;
  assert_int_equal(recv(caller->fd, bytes, REPLY_BYTES, MSG_WAITALL), REPLY_BYTES);
  assert_int_equal(reply_decode(bytes, &reply), 0);
  assert_true(
      auth_is_genuine(&caller->keys, caller->hello_bytes, caller->challenge, bytes, &reply));
  return reply.status;
}

/* Closed without a word. */
static void assert_rejected(const struct caller *caller) {
  uint8_t byte;
  ssize_t n = recv(caller->fd, &byte, 1, 0);
  assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static struct connection *accept_one(struct scene *scene) {
  struct connection *connection = NULL;
  uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
  while (!connection) {
    assert_true(clock_now_ns() < until_ns);
    assert_int_equal(listener_accept(scene->listener, &connection), 0);
  }
  return connection;
}

static void set(const char *first, const char *second) {
  char *environment[] = { (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL };
  param_load(environment);
}

static int start(void **state) {
  (void)state;
  set(NULL, NULL);
  log_capture_start();
  return 0;
}

static int stop(void **state) {
  (void)state;
  setup_stop();
  log_capture_stop();
  set(NULL, NULL);
  return 0;
}

UNIT_TEST_WITH(a_recorded_handshake_is_of_no_use, start, stop) {
  struct scene scene;
  struct caller caller;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  caller_greet(&caller, &scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  struct connection *connection = accept_one(&scene);
  /* Word for word, for the first lane and, with the connection there, as one that reconnects. */
  for (int i = 0; i < 2; i++) {
    uint8_t challenge[CHALLENGE_BYTES];
    int fd = dial_plainly(&scene.handle.addresses[0], "1");
    by_hand_say(fd, caller.hello_bytes, HELLO_BYTES, false);
    assert_int_equal(recv(fd, challenge, CHALLENGE_BYTES, MSG_WAITALL), CHALLENGE_BYTES);
    assert_memory_not_equal(challenge, caller.challenge, CHALLENGE_BYTES);
    by_hand_say(fd, caller.proof, PROOF_BYTES, false);
    assert_rejected(&(struct caller){ .fd = fd });
    close(fd);
    if (i == 0) {
      connection_detach(connection);
    }
  }
  nobody_got_in(&scene);
  close(caller.fd);
  scene_still_works(&scene);
  listener_close(scene.listener);
}

/* The connection's identity travels in clear: to know it must not be enough to add or replace a
 * lane. */
UNIT_TEST_WITH(an_identity_is_not_a_key, start, stop) {
  struct scene scene;
  struct caller caller, thief;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  caller_greet(&caller, &scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  struct connection *connection = accept_one(&scene);
  thief = caller;
  memset(&thief.keys, 0, sizeof thief.keys);
  for (unsigned lane = 0; lane < 2; lane++) {
    thief.hello.lane = (uint16_t)lane;
    thief.hello.epoch = 2;
    thief.hello.is_first = lane == 0;
    caller_greet(&thief, &scene);
    caller_prove(&thief);
    assert_rejected(&thief);
    close(thief.fd);
  }
  struct link_lane_view view = lane_view(connection, 0);
  assert_int_equal(view.state, LINK_LANE_UP);
  assert_int_equal(view.epoch, 1);
  assert_int_not_equal(lane_view(connection, 1).state, LINK_LANE_UP);
  /* With the connection's own key the same is welcome. */
  caller.hello.lane = 1;
  caller.hello.is_first = 0;
  close(caller.fd);
  caller_greet(&caller, &scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  connection_detach(connection);
  close(caller.fd);
  listener_close(scene.listener);
}

/* A peer with the keys of its own listener must not get into a connection of another one. */
UNIT_TEST_WITH(keys_open_their_own_door_only, start, stop) {
  struct scene scene, other;
  struct caller caller, thief;
  scene_open(&scene);
  scene_open(&other);
  caller_init(&caller, &scene, NULL);
  caller_init(&thief, &other, NULL); /* with the same connection identity */
  caller_greet(&thief, &other);      /* while there is no such connection yet */
  caller_greet(&caller, &scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  struct connection *connection = accept_one(&scene);
  caller_prove(&thief);
  assert_rejected(&thief);
  connection_detach(connection);
  close(thief.fd);
  close(caller.fd);
  listener_close(scene.listener);
  listener_close(other.listener);
}

UNIT_TEST_WITH(messages_may_come_in_pieces, start, stop) {
  struct scene scene;
  struct caller caller;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  caller.is_slow = true;
  caller_greet(&caller, &scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  connection_detach(accept_one(&scene));
  close(caller.fd);
  listener_close(scene.listener);
}

UNIT_TEST_WITH(what_is_not_known_is_refused_at_once, start, stop) {
  struct scene scene;
  struct caller caller;
  uint8_t bytes[REPLY_BYTES];
  struct reply reply;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  caller.hello.listener[0] ^= 1;
  for (uint8_t is_first = 0; is_first < 2; is_first++) {
    caller.hello.is_first = is_first;
    hello_encode(&caller.hello, caller.hello_bytes);
    caller.fd = dial_plainly(&scene.handle.addresses[0], "1");
    by_hand_say(caller.fd, caller.hello_bytes, HELLO_BYTES, false);
    assert_int_equal(recv(caller.fd, bytes, REPLY_BYTES, MSG_WAITALL), REPLY_BYTES);
    assert_int_equal(reply_decode(bytes, &reply), 0);
    assert_int_equal(reply.status, REPLY_UNKNOWN);
    close(caller.fd);
  }
  listener_close(scene.listener);
}

/* ---- floods ---- */

enum { FLOOD = PENDING_PEERS_MAX + 200 };
static int flood[FLOOD];

static void flood_begin(const struct scene *scene) {
  for (int i = 0; i < FLOOD; i++) {
    flood[i] = dial_plainly(&scene->handle.addresses[0], "1");
  }
}

static void flood_end(void) {
  for (int i = 0; i < FLOOD; i++) {
    close(flood[i]);
  }
}

/* One address takes all places; a peer that came before it, and one that comes now, are served. */
UNIT_TEST_WITH(a_flood_evicts_itself, start, stop) {
  struct scene scene;
  struct caller caller;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  hello_encode(&caller.hello, caller.hello_bytes);
  caller.fd = dial_plainly(&scene.handle.addresses[0], "2");
  by_hand_say(caller.fd, caller.hello_bytes, 100, false);
  flood_begin(&scene);
  scene_still_works(&scene);
  by_hand_say(caller.fd, caller.hello_bytes + 100, HELLO_BYTES - 100, false);
  assert_int_equal(recv(caller.fd, caller.challenge, CHALLENGE_BYTES, MSG_WAITALL),
                   CHALLENGE_BYTES);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  connection_detach(accept_one(&scene));
  close(caller.fd);
  flood_end();
  listener_close(scene.listener);
}

/* Also one that comes from the address of a peer of the job, while that one proves who it is. */
UNIT_TEST_WITH(a_flood_spares_who_has_said_hello, start, stop) {
  struct scene scene;
  struct caller caller;
  scene_open(&scene);
  caller_init(&caller, &scene, NULL);
  hello_encode(&caller.hello, caller.hello_bytes);
  caller.fd = dial_plainly(&scene.handle.addresses[0], "1");
  by_hand_say(caller.fd, caller.hello_bytes, HELLO_BYTES, false);
  assert_int_equal(recv(caller.fd, caller.challenge, CHALLENGE_BYTES, MSG_WAITALL),
                   CHALLENGE_BYTES);
  flood_begin(&scene);
  caller_prove(&caller);
  assert_int_equal(caller_reply(&caller), REPLY_ACCEPTED);
  connection_detach(accept_one(&scene));
  close(caller.fd);
  flood_end();
  listener_close(scene.listener);
}

/* Strangers make this side look for connections, under the lock of the engine that moves the bytes:
 * that must not take longer where there are many. */
UNIT_TEST_WITH(a_search_looks_at_few_of_many_connections, start, stop) {
  enum { MANY = 200, STRANGERS = 50 };
  static struct pair pairs[MANY];
  struct scene scene;
  struct caller caller;
  struct engine *engine;
  uint8_t bytes[REPLY_BYTES];
  param_load((char *[]){ "STRATUS_FLOWS=1", "STRATUS_THREADS=1", NULL });
  scene_open(&scene);
  for (int i = 0; i < MANY; i++) {
    pairs[i] = pair_make(AF_INET);
  }
  assert_int_equal(engine_get(&scene.nic, ENGINE_LISTENS, &engine), 0);
  engine_lock(engine);
  struct id_table *receivers = &engine_lists(engine)->receivers;
  uint64_t before = receivers->compared;
  assert_int_equal(receivers->count, MANY);
  assert_int_equal(engine_lists(engine)->listener_ids.count, 1);
  engine_unlock(engine);
  caller_init(&caller, &scene, NULL);
  uint8_t ours = caller.hello.listener[0];
  for (uint8_t i = 0; i < STRANGERS; i++) {
    caller.hello.listener[0] = ours ^ (i + 1); /* never that of the listener */
    caller.hello.connection[0] = i;
    hello_encode(&caller.hello, caller.hello_bytes);
    caller.fd = dial_plainly(&scene.handle.addresses[0], "1");
    by_hand_say(caller.fd, caller.hello_bytes, HELLO_BYTES, false);
    assert_int_equal(recv(caller.fd, bytes, REPLY_BYTES, MSG_WAITALL), REPLY_BYTES);
    close(caller.fd);
  }
  engine_lock(engine);
  assert_true(receivers->compared - before < 4 * STRANGERS); /* a walk: MANY each */
  engine_unlock(engine);
  for (int i = 0; i < MANY; i++) {
    pair_close(pairs[i]);
  }
  scene_still_works(&scene);
  listener_close(scene.listener);
}

/* ---- job secrets ---- */

UNIT_TEST_WITH(a_job_with_a_secret_works, start, stop) {
  struct scene scene;
  struct tree tree;
  char variable[TREE_PATH_MAX + 32], path[TREE_PATH_MAX];
  set("STRATUS_SECRET=0123456789abcdef0123456789abcdef", NULL);
  scene_open(&scene);
  scene_still_works(&scene);
  /* The same from a file. */
  tree_create(&tree);
  tree_write(&tree, "secret", "0123456789abcdef0123456789abcdef\n");
  assert_int_equal(chmod(tree_path(&tree, "secret", path), 0600), 0);
  snprintf(variable, sizeof variable, "STRATUS_SECRET_FILE=%s", tree_path(&tree, "secret", path));
  set(variable, NULL);
  scene_still_works(&scene);
  assert_int_equal(log_capture_find("chmod 600"), 0);
  assert_int_equal(log_capture_find("0123456789abcdef"), 0);
  tree_remove(&tree);
  listener_close(scene.listener);
}

UNIT_TEST_WITH(a_secret_that_cannot_be_read_ends_the_job, start, stop) {
  struct nic nic = pair_loopback(AF_INET);
  struct listener *listener;
  uint8_t bytes[HANDLE_BYTES];
  set("STRATUS_SECRET_FILE=/nonexistent/secret", NULL);
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), -EACCES);
  assert_int_equal(log_capture_find("STRATUS_SECRET_FILE=/nonexistent/secret"), 1);
  set(NULL, NULL);
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), 0);
  struct connection *connection;
  set("STRATUS_SECRET_FILE=/nonexistent/secret", NULL);
  assert_int_equal(connector_connect(&nic, 1, -1, 0, bytes, &connection), -EACCES);
  listener_close(listener);
}

UNIT_TEST_WITH(a_secret_that_others_can_read_or_guess_ends_the_job, start, stop) {
  static const mode_t modes[] = { 0644, 0640, 0604, 0660, 0620 };
  struct nic nic = pair_loopback(AF_INET);
  struct listener *listener;
  struct tree tree;
  uint8_t bytes[HANDLE_BYTES];
  char variable[TREE_PATH_MAX + 32], path[TREE_PATH_MAX];
  tree_create(&tree);
  tree_write(&tree, "secret", "0123456789abcdef0123456789abcdef\n");
  snprintf(variable, sizeof variable, "STRATUS_SECRET_FILE=%s", tree_path(&tree, "secret", path));
  set(variable, NULL);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assert_int_equal(chmod(path, modes[i]), 0);
    assert_int_equal(listener_open(&nic, 1, bytes, &listener), -EACCES);
  }
  assert_int_equal(log_capture_find("chmod 600"), sizeof modes / sizeof *modes);
  set("STRATUS_SECRET=0123456789abcde", NULL); /* 15 characters */
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), -EACCES);
  assert_int_equal(log_capture_find("the secret in STRATUS_SECRET has 15 characters"), 1);
  assert_int_equal(log_capture_find("0123456789abcde"), 0);
  tree_remove(&tree);
}

static void *write_in_pieces(void *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  ssize_t first = write(fd, "0123456789", 10);
  usleep(50000); /* so that a reader sees ten bytes */
  ssize_t second = write(fd, "abcdef0123456789abcdef\n", 23);
  close(fd);
  return (void *)(intptr_t)(first + second);
}

UNIT_TEST_WITH(a_secret_from_a_fifo_is_read_to_its_end, start, stop) {
  struct nic nic = pair_loopback(AF_INET);
  struct listener *listener;
  struct tree tree;
  uint8_t bytes[HANDLE_BYTES];
  char variable[TREE_PATH_MAX + 32], path[TREE_PATH_MAX];
  pthread_t writer;
  void *written;
  tree_create(&tree);
  assert_int_equal(mkfifo(tree_path(&tree, "fifo", path), 0600), 0);
  snprintf(variable, sizeof variable, "STRATUS_SECRET_FILE=%s", path);
  set(variable, NULL);
  assert_int_equal(pthread_create(&writer, NULL, write_in_pieces, path), 0);
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), 0);
  pthread_join(writer, &written);
  assert_int_equal((intptr_t)written, 33);
  assert_int_equal(log_capture_find("characters"), 0);
  listener_close(listener);
  tree_remove(&tree);
}

/* Who has read the handle in NCCL's bootstrap and does not know the secret. */
UNIT_TEST_WITH(a_handle_without_the_secret_is_not_enough, start, stop) {
  struct scene scene;
  struct caller caller;
  static const uint8_t wrong[AUTH_KEY_BYTES] = { 1 };
  const uint8_t *jobs[] = { NULL, wrong };
  set("STRATUS_SECRET=0123456789abcdef0123456789abcdef", NULL);
  scene_open(&scene);
  for (int i = 0; i < 2; i++) {
    caller_init(&caller, &scene, jobs[i]);
    caller_greet(&caller, &scene);
    caller_prove(&caller);
    assert_int_equal(caller_reply(&caller), REPLY_OTHER_SECRET);
    close(caller.fd);
  }
  nobody_got_in(&scene);
  assert_true(log_capture_find("STRATUS_SECRET") >= 1);
  assert_true(log_capture_find("caller (127.0.0.1:") >= 1);
  assert_int_equal(log_capture_find("0123456789abcdef"), 0);
  scene_still_works(&scene);
  listener_close(scene.listener);
}

UNIT_MAIN(NULL, NULL)
