/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a handshake that are lost, over loopback: a socket filter drops what arrives with data
 * in it, as a network would, so that the sender's kernel gets no acknowledgement. */
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/limits.h"
#include "tests/lib/by_hand.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

#define NONE 1 /* no errno */
/* Both ends have looked by then whether what they sent has arrived (tcp_stats_ack_wait_ns). */
#define LOOKED_NS (150 * NS_PER_MS)

static struct dial *dial;
static uint8_t first_nonce[NONCE_BYTES], last_nonce[NONCE_BYTES];
static unsigned hellos;
void __real_handshake_finish(void *message, enum handshake_kind kind);
void __wrap_handshake_finish(void *message, enum handshake_kind kind);

void __wrap_handshake_finish(void *message, enum handshake_kind kind) {
  if (kind == HANDSHAKE_HELLO) {
    const struct hello *hello = message;
    memcpy(hellos++ ? last_nonce : first_nonce, hello->nonce, NONCE_BYTES);
  }
  __real_handshake_finish(message, kind);
}

static struct nic nic;
static struct engine *engine;
static int listening; /* the test's own, where it plays the listening side */
static struct sockaddr_storage address;
/* What the dial ended with. This and what is above under the engine's lock: its thread may be what
 * goes on with the dial. */
static int ended;

/* A connection that comes later has the filter of its listening socket. */
static void lose_data(int fd) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12), /* bytes of the TCP header, by fours, and four bits */
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
    BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
    BPF_STMT(BPF_MISC | BPF_TAX, 0),
    BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, 0),
    BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
  };
  const struct sock_fprog program = { sizeof code / sizeof code[0], code };
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

static void lose_nothing(int fd) {
  int none = 0;
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none), 0);
}

static void note(void *argument, int error, const struct lane_path *path,
                 const struct reply *reply) {
  ended = error;
  dial = NULL;
}

static void poll_engine(void) {
  engine_lock(engine);
  engine_poll(engine);
  engine_unlock(engine);
}

static int dial_ended(void) {
  engine_lock(engine);
  int how = ended;
  engine_unlock(engine);
  return how;
}

/* Dials the test's socket. */
static void begin(void) {
  const struct hello hello = { .params = { .lanes = 1, .chunk_bytes = 131072, .host = "here" },
                               .epoch = 1,
                               .dscp = -1 };
  static const struct auth_keys keys = { .handle = { 1 } };
  int error;
  engine_lock(engine);
  ended = NONE;
  hellos = 0;
  dial = dial_start(engine, &nic, &address, &hello, &keys, clock_now_ns() + 2 * PATIENCE_NS, note,
                    NULL, &error);
  assert_non_null(dial);
  engine_unlock(engine);
}

/* The next connection to the test's socket. */
static int next_connection(void) {
  int fd;
  UNTIL((fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
    poll_engine();
  }
  return fd;
}

/* That the dial says. */
static void hear(int fd, union handshake_message *message, size_t bytes) {
  size_t got = 0;
  UNTIL(got == bytes) {
    ssize_t n = recv(fd, (uint8_t *)message + got, bytes - got, MSG_DONTWAIT);
    got += n > 0 ? (size_t)n : 0;
    assert_true(n != 0);
    poll_engine();
  }
}

static void challenge(int fd) {
  struct challenge asked = { 0 };
  handshake_finish(&asked, HANDSHAKE_CHALLENGE);
  by_hand_say(fd, &asked, CHALLENGE_BYTES, false);
}

static void pass(uint64_t time_ns) {
  for (uint64_t until_ns = clock_now_ns() + time_ns; clock_now_ns() < until_ns;) {
    poll_engine();
  }
}

static void end(int fd) {
  close(fd);
  engine_lock(engine);
  if (dial) {
    dial_cancel(dial);
  }
  engine_unlock(engine);
}

static int start(void **state) {
  pair_set_up(state);
  nic = pair_loopback(AF_INET);
  listening = tcp_socket_listen(&nic, &address);
  assert_true(listening >= 0);
  return engine_get(&nic, ENGINE_DIALS, &engine);
}

static int stop(void **state) {
  close(listening);
  return pair_tear_down(state);
}

UNIT_TEST_WITH(a_lost_hello_is_said_again_on_another_connection, start, stop) {
  union handshake_message message;
  uint8_t byte;
  lose_data(listening);
  begin();
  int lost = next_connection();
  lose_nothing(listening);
  int fd = next_connection();
  hear(fd, &message, HELLO_BYTES);
  assert_int_equal(handshake_check(&message, HANDSHAKE_HELLO), 0);
  assert_int_equal(message.hello.epoch, 1);
  engine_lock(engine);
  assert_int_equal(hellos, 2);
  assert_memory_not_equal(first_nonce, last_nonce, NONCE_BYTES);
  assert_memory_equal(message.hello.nonce, last_nonce, NONCE_BYTES);
  engine_unlock(engine);
  lose_nothing(lost);
  assert_int_equal(recv(lost, &byte, 1, MSG_DONTWAIT), -1);
  assert_int_equal(errno, ECONNRESET); /* the kernel does not send it later */
  challenge(fd);
  hear(fd, &message, PROOF_BYTES);
  assert_int_equal(dial_ended(), NONE);
  close(lost);
  end(fd);
}

UNIT_TEST_WITH(each_hello_is_waited_for_twice_as_long, start, stop) {
  uint64_t begin_ns = clock_now_ns();
  bool are_said = false;
  lose_data(listening);
  begin();
  while (!are_said) {
    pass(NS_PER_MS);
    engine_lock(engine);
    are_said = hellos == 6;
    engine_unlock(engine);
  }
  assert_true(clock_now_ns() - begin_ns >= (1 + 2 + 4 + 8 + 16) * DIAL_FIRST_REDIAL_NS);
  end(-1);
}

UNIT_TEST_WITH(a_lost_proof_ends_the_dial, start, stop) {
  union handshake_message message;
  begin();
  int fd = next_connection();
  hear(fd, &message, HELLO_BYTES);
  lose_data(fd);
  challenge(fd);
  UNTIL(dial_ended() != NONE) { /* the dial itself has longer */
    poll_engine();
  }
  assert_int_equal(dial_ended(), -ETIMEDOUT);
  end(fd);
}

/* Says hello to a listener, with or without hearing its challenge. */
static int say_hello(const struct handle *handle, bool is_heard) {
  struct by_hand_caller caller = by_hand_caller(handle, NULL);
  handshake_finish(&caller.hello, HANDSHAKE_HELLO);
  by_hand_dial(&caller);
  if (!is_heard) {
    lose_data(caller.fd);
  }
  by_hand_say(caller.fd, &caller.hello, HELLO_BYTES, false);
  return caller.fd;
}

UNIT_TEST_WITH(a_lost_challenge_ends_the_connection, start, stop) {
  union handshake_message message;
  uint8_t byte;
  struct meeting meeting = meeting_open(AF_INET);
  int deaf = say_hello(&meeting.handle, false), fd = say_hello(&meeting.handle, true);
  hear(fd, &message, CHALLENGE_BYTES);
  pass(LOOKED_NS);
  assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1); /* a proof is waited for */
  assert_int_equal(errno, EAGAIN);
  lose_nothing(deaf);
  hear(deaf, &message, CHALLENGE_BYTES);
  UNTIL(recv(deaf, &byte, 1, MSG_DONTWAIT) == 0) {
    poll_engine();
  }
  assert_int_equal(log_capture_find("rejected a connection"), 0);
  close(deaf);
  close(fd);
  meeting_close(&meeting);
}

/* What an inquiry at the test's address ends with. */
static int inquire(void) {
  engine_lock(engine);
  int error = ended = NONE;
  dial = dial_start(engine, &nic, &address, NULL, NULL, clock_now_ns() + 2 * PATIENCE_NS, note,
                    NULL, &error);
  engine_unlock(engine);
  UNTIL(error || dial_ended() != NONE) {
    poll_engine();
  }
  return error ? error : dial_ended();
}

UNIT_TEST_WITH(an_inquiry_tells_whether_somebody_listens, start, stop) {
  uint8_t byte;
  assert_int_equal(inquire(), -EISCONN);
  int fd = next_connection();
  assert_int_equal(recv(fd, &byte, 1, 0), 0); /* it says nothing, and leaves */
  close(fd);
  close(listening);
  listening = -1;
  assert_int_equal(inquire(), -ECONNREFUSED);
  address.ss_family = AF_UNIX;
  int error = inquire();
  assert_true(error < 0 && error != -ECONNREFUSED);
}
