/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say to stratus-run --check, and what it makes of it; strangers' datagrams. */
#include "common/tools/limits.h"
#include "common/tools/verdict.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/unit.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct verdict *verdict;
static char said[4096];

static int begin(void **state) {
  (void)state;
  verdict = verdict_new(false);
  return verdict ? 0 : -1;
}

static int begin_alone(void **state) {
  (void)state;
  verdict = verdict_new(true);
  return verdict ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  verdict_free(verdict);
  return 0;
}

/* Twice: it may come by two addresses. */
static void take(struct check_event *event, int host, long pid) {
  static unsigned long number;
  event->pid = pid;
  event->number = ++number;
  snprintf(event->host, sizeof event->host, "host%d", host);
  snprintf(event->host_id, sizeof event->host_id, "id%d", host);
  verdict_take(verdict, event, 5);
  verdict_take(verdict, event, 5);
}

static void tell(int host, long pid, enum check_kind kind, const char *text) {
  struct check_event event = { .kind = kind };
  snprintf(event.text, sizeof event.text, "%s", text ? text : "");
  take(&event, host, pid);
}

static void tell_communicator(int host, long pid, uint64_t communicator, unsigned long ranks) {
  struct check_event event = {
    .kind = CHECK_COMMUNICATOR, .ranks = ranks, .nodes = ranks, .communicator = communicator
  };
  take(&event, host, pid);
}

/* Of a launcher's process: it is in use. */
static void tell_rank(int rank, int size) {
  struct check_event event = { .kind = CHECK_IN_USE, .rank = rank, .size = size };
  take(&event, rank / 2, rank);
}

static const char *name_of(const char *address) {
  return strcmp(address, "10.0.0.3") == 0 ? "gpu3" : NULL;
}

static void print(bool is_good) {
  FILE *out = fmemopen(said, sizeof said, "w");
  verdict_print(verdict, is_good, name_of, out);
  fclose(out);
}

static enum verdict_state judge(uint64_t after_ns, enum verdict_moment moment) {
  return verdict_judge(verdict, 5 + after_ns, moment);
}

#define WITH_VERDICT(test) UNIT_TEST_WITH(test, begin, end)

WITH_VERDICT(silence_is_nothing) {
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_NOTHING);
  assert_int_equal(judge(0, VERDICT_HAS_FAILED), VERDICT_NOTHING);
}

WITH_VERDICT(all_ranks_make_it_good) {
  for (int i = 0; i < 64; i++) {
    tell(i % 8, i, CHECK_IN_USE, NULL);
    tell_communicator(i % 8, i, 7, 64);
    tell_communicator(i % 8, i, 8, 2); /* a part of the job */
  }
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_ENDED), VERDICT_GOOD);
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_HAS_FAILED), VERDICT_GOOD);
  print(true);
  assert_string_equal(said, "64 processes on 8 hosts use stratus; NCCL's job has 64 ranks\n");
}

/* NCCL takes each GPU for a node where it has neither peer access nor shared memory. */
WITH_VERDICT(one_process_may_have_all_ranks) {
  tell(1, 7, CHECK_IN_USE, NULL);
  tell_communicator(1, 7, 0, 2);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_DOUBT);
  tell_communicator(1, 7, 0, 2);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_GOOD);
}

WITH_VERDICT(a_rank_of_nccl_that_says_nothing_is_a_doubt) {
  for (int host = 0; host < 3; host++) {
    tell(host, 1, CHECK_IN_USE, NULL);
    tell_communicator(host, 1, 7, 4);
    tell_communicator(host, 1, 9, 4); /* more of these make up for no rank */
  }
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_RUNNING), VERDICT_DOUBT);
  print(false);
  assert_non_null(strstr(said, "NCCL's job has 4 ranks; in use on host0 host1 host2"));
  tell(3, 1, CHECK_IN_USE, NULL);
  tell_communicator(3, 1, 9, 4);
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_RUNNING), VERDICT_GOOD);
}

/* Its bootstrap hangs, or a library is cut: NCCL makes no communicator anywhere. */
WITH_VERDICT(a_rank_of_the_launcher_that_says_nothing_is_named) {
  tell_rank(0, 3);
  tell_rank(1, 3);
  assert_int_equal(judge(0, VERDICT_HAS_FAILED), VERDICT_DOUBT);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_DOUBT);
  print(false);
  assert_non_null(strstr(said, "rank 2 of 3 has not said anything"));
  assert_non_null(strstr(said, "none has said that NCCL made a communicator; in use on host0\n"));
  tell_rank(2, 3);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_GOOD); /* a job without a tuner */
  assert_int_equal(judge(0, VERDICT_HAS_FAILED), VERDICT_DOUBT);
}

/* Those of a smaller communicator that ended well did so without the others. */
WITH_VERDICT(a_process_without_nccl_is_no_fault) {
  for (int rank = 0; rank < 3; rank++) {
    tell_rank(rank, 4);
    tell_communicator(rank / 2, rank, 7, 3);
  }
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_GOOD);
  print(true);
  assert_non_null(strstr(said, "rank 3 of 4 has not said anything"));
  assert_int_equal(judge(0, VERDICT_HAS_FAILED), VERDICT_DOUBT);
}

WITH_VERDICT(many_silent_ranks_are_counted) {
  tell_rank(0, 2);
  tell_rank(5, 40); /* a second launch, larger */
  print(false);
  assert_non_null(strstr(
      said, "ranks 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 23 others of 40 "
            "have not said anything"));
}

WITH_VERDICT(a_peer_without_it_fails_once_others_were_heard) {
  tell(2, 1, CHECK_IN_USE, NULL);
  tell(2, 1, CHECK_NOT_PEER, "10.0.0.3");
  tell(4, 1, CHECK_NOT_PEER, "10.0.0.3"); /* the same peer */
  tell(4, 1, CHECK_NOT_PEER, "10.0.0.9");
  assert_int_equal(judge(0, VERDICT_RUNNING), VERDICT_GOOD);
  assert_int_equal(judge(VERDICT_SETTLE_NS, VERDICT_RUNNING), VERDICT_FAILED);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_FAILED);
  print(false);
  char *first = strstr(said, "host gpu3 does not use stratus: host host2 got");
  assert_non_null(first);
  assert_non_null(strstr(first, "(10.0.0.3)"));
  assert_null(strstr(strchr(first, '\n'), "gpu3"));
  assert_non_null(strstr(said, "host 10.0.0.9 does not use stratus"));
}

/* One of two silent ranks is the peer; the other may speak yet. */
WITH_VERDICT(silent_ranks_are_waited_for) {
  tell_rank(0, 4);
  tell_rank(1, 4);
  tell(0, 0, CHECK_NOT_PEER, "10.0.0.3");
  assert_int_equal(judge(VERDICT_SILENCE_NS - 1, VERDICT_RUNNING), VERDICT_DOUBT);
  assert_int_equal(judge(VERDICT_SILENCE_NS, VERDICT_RUNNING), VERDICT_FAILED);
  tell_rank(3, 4);
  assert_int_equal(judge(VERDICT_SETTLE_NS, VERDICT_RUNNING), VERDICT_FAILED);
}

WITH_VERDICT(a_communicator_without_the_net_plugin_fails) {
  tell_communicator(1, 7, 0, 1);
  assert_int_equal(judge(VERDICT_GRACE_NS - 1, VERDICT_RUNNING), VERDICT_GOOD);
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_RUNNING), VERDICT_FAILED);
  print(false);
  assert_non_null(strstr(said,
                         "host host1 does not use stratus: NCCL has not loaded the net plugin "
                         "in process 7"));
  tell(1, 7, CHECK_IN_USE, NULL); /* it was late */
  assert_int_equal(judge(VERDICT_GRACE_NS, VERDICT_RUNNING), VERDICT_GOOD);
}

WITH_VERDICT(a_host_may_say_why_not) {
  tell(1, 7, CHECK_NOT_HERE, "NCCL_NET=Socket is set in the environment");
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_FAILED);
  print(false);
  assert_non_null(strstr(said, "host host1 does not use stratus: NCCL_NET=Socket is set"));
}

/* Each rank of a launcher has a check of its own. */
UNIT_TEST_WITH(alone_it_speaks_of_itself, begin_alone, end) {
  tell_rank(1, 4);
  tell_communicator(0, 1, 7, 4);
  assert_int_equal(judge(0, VERDICT_ENDED), VERDICT_GOOD);
  print(true);
  assert_string_equal(said, "1 process on 1 host uses stratus; NCCL's job has 4 ranks\n");
  tell(0, 1, CHECK_NOT_PEER, "10.0.0.3");
  assert_int_equal(judge(VERDICT_SETTLE_NS, VERDICT_RUNNING), VERDICT_FAILED);
}

/* ---- datagrams ---- */

UNIT_TEST(an_event_survives_the_way) {
  struct check_event sent, read;
  setenv("NCCL_HOSTID", "a host\nof mine", 1);
  check_event_begin(CHECK_COMMUNICATOR, &sent);
  unsetenv("NCCL_HOSTID");
  sent.ranks = 4096, sent.nodes = 512, sent.communicator = UINT64_MAX;
  sent.rank = 7, sent.size = 8;
  memset(sent.text, 'x', sizeof sent.text - 1);
  memset(sent.host_id + 14, 'y', sizeof sent.host_id - 15);
  memset(sent.host, 'z', sizeof sent.host - 1);
  char bytes[CHECK_DATAGRAM_MAX];
  size_t length = check_event_format(&sent, TOKEN, bytes);
  assert_true(check_event_parse(bytes, length, TOKEN, &read));
  assert_int_equal(read.kind, CHECK_COMMUNICATOR);
  assert_int_equal(read.pid, sent.pid);
  assert_int_equal(read.ranks, 4096);
  assert_int_equal(read.nodes, 512);
  assert_true(read.communicator == UINT64_MAX && read.number == sent.number);
  assert_true(read.rank == 7 && read.size == 8);
  assert_string_equal(read.host, sent.host);
  assert_memory_equal(read.host_id, "a host?of mineyyy", 17);
  assert_string_equal(read.text, sent.text);
  /* Any part of it, any wrong byte: no event, or a harmless one. */
  for (size_t i = 0; i < length; i++) {
    assert_false(check_event_parse(bytes, i, TOKEN, &read));
    char old = bytes[i];
    bytes[i] = '\x1b';
    if (check_event_parse(bytes, length, TOKEN, &read)) {
      assert_null(strchr(read.host, '\x1b'));
      assert_null(strchr(read.host_id, '\x1b'));
      assert_null(strchr(read.text, '\x1b'));
    }
    bytes[i] = old;
  }
}

UNIT_TEST(strangers_are_not_heard) {
  struct check_event event = { .kind = CHECK_NOT_PEER, .pid = 1, .host = "h" }, read;
  char bytes[CHECK_DATAGRAM_MAX];
  size_t length = check_event_format(&event, TOKEN, bytes);
  assert_true(check_event_parse(bytes, length, TOKEN, &read));
  assert_false(check_event_parse(bytes, length, "0123456789abcdef0123456789abcdeF", &read));
  event.kind = CHECK_KIND_COUNT;
  length = check_event_format(&event, TOKEN, bytes);
  assert_false(check_event_parse(bytes, length, TOKEN, &read));
  event.kind = CHECK_NOT_PEER;
  event.rank = 2, event.size = 2; /* of none */
  length = check_event_format(&event, TOKEN, bytes);
  assert_false(check_event_parse(bytes, length, TOKEN, &read));
  event = (struct check_event){ .kind = CHECK_IN_USE }; /* nameless */
  length = check_event_format(&event, TOKEN, bytes);
  assert_false(check_event_parse(bytes, length, TOKEN, &read));
}

UNIT_TEST(events_know_their_place) {
  struct check_event first, second;
  setenv("STRATUS_COLL_RANK", "3", 1);
  setenv("STRATUS_COLL_SIZE", "4", 1);
  check_event_begin(CHECK_IN_USE, &first);
  setenv("STRATUS_COLL_RANK", "4", 1); /* of no such launch */
  check_event_begin(CHECK_IN_USE, &second);
  unsetenv("STRATUS_COLL_RANK");
  unsetenv("STRATUS_COLL_SIZE");
  assert_true(first.rank == 3 && first.size == 4);
  assert_int_equal(second.size, 0);
  assert_int_equal(second.number, first.number + 1);
}

/* Where events come, on this machine. */
static int listen_here(struct sockaddr_in *here) {
  struct timeval patience = { .tv_sec = 10 };
  socklen_t bytes = sizeof *here;
  *here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)here, sizeof *here), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)here, &bytes), 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  return fd;
}

/* Events of both kinds, to whom the text names: so many come, and no more before what is sent after
 * them. */
static void assert_arrive(int fd, const struct sockaddr_in *here, const char *where, int wanted) {
  char datagram[CHECK_DATAGRAM_MAX];
  struct check_event event;
  setenv(CHECK_VARIABLE, where, 1);
  errno = EXFULL;
  check_event_send(CHECK_IN_USE, NULL);
  check_event_send_communicator(1, 2, 2);
  assert_int_equal(errno, EXFULL);
  unsetenv(CHECK_VARIABLE);
  for (int i = 0; i < wanted; i++) {
    ssize_t got = recv(fd, datagram, sizeof datagram, 0);
    assert_true(got > 0 && check_event_parse(datagram, (size_t)got, TOKEN, &event));
  }
  assert_int_equal(sendto(fd, "", 1, 0, (const struct sockaddr *)here, sizeof *here), 1);
  assert_int_equal(recv(fd, datagram, sizeof datagram, 0), 1);
}

/* A bad STRATUS_CHECK costs nothing but the message; what is good in it is used. */
UNIT_TEST(a_bad_variable_is_no_harm) {
  static const char *const bad[] = { "",
                                     "x",
                                     TOKEN,
                                     TOKEN "@",
                                     TOKEN "@,,",
                                     TOKEN "@:",
                                     TOKEN "@[",
                                     TOKEN "@[]:1",
                                     TOKEN "@1.2.3.4",
                                     TOKEN "@1.2.3.4:0",
                                     TOKEN "@1.2.3.4:99999999999",
                                     TOKEN "@[::1:5",
                                     TOKEN "@localhost:5" };
  char where[256];
  struct sockaddr_in here;
  int fd = listen_here(&here);
  snprintf(where, sizeof where, TOKEN "@127.0.0.1:%u", ntohs(here.sin_port));
  assert_arrive(fd, &here, where, 2);
  assert_arrive(fd, &here, where + 1, 0);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_arrive(fd, &here, bad[i], 0);
    snprintf(where, sizeof where, "%s,127.0.0.1:%u", bad[i], ntohs(here.sin_port));
    assert_arrive(fd, &here, where, strchr(bad[i], '@') ? 2 : 0);
  }
  int next = dup(fd); /* the lowest that is free: none was left open */
  assert_int_equal(next, fd + 1);
  close(next);
  close(fd);
}

UNIT_MAIN(NULL, NULL)
