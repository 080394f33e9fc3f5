/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say to stratus-run --check, and what it makes of it; strangers' datagrams. */
#include "common/tools/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct verdict *verdict;
static char said[4096];

static int begin(void **state) {
  (void)state;
  verdict = verdict_new();
  return verdict ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  verdict_free(verdict);
  return 0;
}

static void tell(int host, long pid, enum check_kind kind, unsigned long nodes, const char *text) {
  struct check_event event = { .kind = kind, .pid = pid, .ranks = 2 * nodes, .nodes = nodes };
  snprintf(event.host, sizeof event.host, "host%d", host);
  snprintf(event.host_id, sizeof event.host_id, "id%d", host);
  snprintf(event.text, sizeof event.text, "%s", text ? text : "");
  verdict_take(verdict, &event, 5);
}

static const char *name_of(const char *address) {
  return strcmp(address, "10.0.0.3") == 0 ? "gpu3" : NULL;
}

static void print(void) {
  FILE *out = fmemopen(said, sizeof said, "w");
  verdict_print(verdict, name_of, out);
  fclose(out);
}

static enum verdict_state judge(uint64_t after_ns, bool is_end) {
  return verdict_judge(verdict, 5 + after_ns, is_end);
}

static void silence_is_nothing(void **state) {
  (void)state;
  assert_int_equal(judge(0, true), VERDICT_NOTHING);
}

static void all_hosts_make_it_good(void **state) {
  (void)state;
  for (int i = 0; i < 64; i++) {
    tell(i % 8, i, CHECK_IN_USE, 0, NULL);
    tell(i % 8, i, CHECK_IN_USE, 0, NULL); /* again: the same */
    tell(i % 8, i, CHECK_COMMUNICATOR, 8, NULL);
    tell(i % 8, i, CHECK_COMMUNICATOR, 2, NULL); /* a part of the job */
  }
  assert_int_equal(judge(VERDICT_GRACE_NS, true), VERDICT_GOOD);
  print();
  assert_string_equal(said,
                      "64 processes on 8 hosts use stratus; the job has 16 ranks on 8 hosts\n");
}

static void a_host_that_says_nothing_is_a_doubt(void **state) {
  (void)state;
  for (int host = 0; host < 3; host++) {
    tell(host, 1, CHECK_IN_USE, 0, NULL);
    tell(host, 1, CHECK_COMMUNICATOR, 4, NULL);
  }
  assert_int_equal(judge(VERDICT_GRACE_NS, false), VERDICT_DOUBT);
  print();
  assert_non_null(strstr(said, "in use on host0 host1 host2"));
  tell(3, 1, CHECK_IN_USE, 0, NULL);
  assert_int_equal(judge(VERDICT_GRACE_NS, false), VERDICT_GOOD);
}

static void a_peer_without_it_fails_once_others_were_heard(void **state) {
  (void)state;
  tell(2, 1, CHECK_IN_USE, 0, NULL);
  tell(2, 1, CHECK_NOT_PEER, 0, "10.0.0.3");
  tell(4, 1, CHECK_NOT_PEER, 0, "10.0.0.3"); /* the same peer */
  tell(4, 1, CHECK_NOT_PEER, 0, "10.0.0.9");
  assert_int_equal(judge(0, false), VERDICT_GOOD);
  assert_int_equal(judge(VERDICT_SETTLE_NS, false), VERDICT_FAILED);
  assert_int_equal(judge(0, true), VERDICT_FAILED);
  print();
  char *first = strstr(said, "host gpu3 does not use stratus: host host2 got");
  assert_non_null(first);
  assert_non_null(strstr(first, "(10.0.0.3)"));
  assert_null(strstr(strchr(first, '\n'), "gpu3"));
  assert_non_null(strstr(said, "host 10.0.0.9 does not use stratus"));
}

static void a_communicator_without_the_net_plugin_fails(void **state) {
  (void)state;
  tell(1, 7, CHECK_COMMUNICATOR, 1, NULL);
  assert_int_equal(judge(VERDICT_GRACE_NS - 1, false), VERDICT_DOUBT);
  assert_int_equal(judge(VERDICT_GRACE_NS, false), VERDICT_FAILED);
  print();
  assert_non_null(strstr(said,
                         "host host1 does not use stratus: NCCL has not loaded the net plugin "
                         "in process 7"));
  tell(1, 7, CHECK_IN_USE, 0, NULL); /* it was late */
  assert_int_equal(judge(VERDICT_GRACE_NS, false), VERDICT_GOOD);
}

static void a_host_may_say_why_not(void **state) {
  (void)state;
  tell(1, 7, CHECK_NOT_HERE, 0, "NCCL_NET=Socket is set in the environment");
  assert_int_equal(judge(0, true), VERDICT_FAILED);
  print();
  assert_non_null(strstr(said, "host host1 does not use stratus: NCCL_NET=Socket is set"));
}

/* ---- datagrams ---- */

static void an_event_survives_the_way(void **state) {
  (void)state;
  struct check_event sent, read;
  setenv("NCCL_HOSTID", "a host\nof mine", 1);
  check_event_begin(CHECK_COMMUNICATOR, &sent);
  unsetenv("NCCL_HOSTID");
  sent.ranks = 4096, sent.nodes = 512;
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

static void strangers_are_not_heard(void **state) {
  (void)state;
  struct check_event event = { .kind = CHECK_NOT_PEER, .pid = 1, .host = "h" }, read;
  char bytes[CHECK_DATAGRAM_MAX];
  size_t length = check_event_format(&event, TOKEN, bytes);
  assert_true(check_event_parse(bytes, length, TOKEN, &read));
  assert_false(check_event_parse(bytes, length, "0123456789abcdef0123456789abcdeF", &read));
  event.kind = CHECK_KIND_COUNT;
  length = check_event_format(&event, TOKEN, bytes);
  assert_false(check_event_parse(bytes, length, TOKEN, &read));
  event = (struct check_event){ .kind = CHECK_IN_USE }; /* nameless */
  length = check_event_format(&event, TOKEN, bytes);
  assert_false(check_event_parse(bytes, length, TOKEN, &read));
}

/* A bad STRATUS_CHECK costs nothing but the message. */
static void a_bad_variable_is_no_harm(void **state) {
  (void)state;
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
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    setenv(CHECK_VARIABLE, bad[i], 1);
    check_event_send(CHECK_IN_USE, 0, 0, NULL);
  }
  unsetenv(CHECK_VARIABLE);
}

int main(void) {
#define WITH_VERDICT(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
    WITH_VERDICT(silence_is_nothing),
    WITH_VERDICT(all_hosts_make_it_good),
    WITH_VERDICT(a_host_that_says_nothing_is_a_doubt),
    WITH_VERDICT(a_peer_without_it_fails_once_others_were_heard),
    WITH_VERDICT(a_communicator_without_the_net_plugin_fails),
    WITH_VERDICT(a_host_may_say_why_not),
    cmocka_unit_test(an_event_survives_the_way),
    cmocka_unit_test(strangers_are_not_heard),
    cmocka_unit_test(a_bad_variable_is_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
