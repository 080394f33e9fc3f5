/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile means beyond lanes: that ranks which would choose differently never connect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/profile.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/json_text.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/unit.h"

#define HEAD "{'schema': 2, 'id': 'a'"
#define TABLE_TO(bytes)                                                                            \
  ", 'tables': [{'coll': 'allreduce', 'nodes': 2, 'ppn': 1, 'rows': ["                             \
  "{'bytes_lo': 1024, 'bytes_hi': " bytes ", 'algo': 'ring', 'proto': 'simple'}]}]}"
#define TABLE TABLE_TO("1048576")

static struct profile parse(const char *text) {
  struct profile profile;
  struct profile_error error;
  text = json_text(text);
  if (profile_parse(text, strlen(text), &profile, &error) != 0) {
    fail_msg("%s", error.text);
  }
  return profile;
}

static uint64_t hash_of(const char *text, int nccl_version) {
  struct profile profile = parse(text);
  struct decision decision = decision_of(&profile, nccl_version);
  assert_true(decision.profile == profile_hash(&profile));
  assert_int_equal(decision.version, PROFILE_DECISION_VERSION);
  profile_free(&profile);
  return decision.hash;
}

/* ---- what counts ---- */

static int stop(void **state) {
  settings_use_decision(&(struct decision){ 0 });
  return pair_tear_down(state);
}

#define TEST(name) UNIT_TEST_EACH(name, pair_set_up, stop, "STRATUS_PROGRESS=inline")

TEST(only_what_decides_counts) {
  setenv("NCCL_TUNER_PLUGIN", "libnccl-tuner-stratus.so", 1);
  uint64_t table = hash_of(HEAD TABLE, 22907);
  assert_true(table != 0);
  assert_true(hash_of("{'schema': 2, 'id': 'b', 'created': '2026-01-01', 'nccl_max': 23099, "
                      "'match': {'cloud': 'aws'}, 'net': {'flows': 4, 'speed_mbps': 25000}" TABLE,
                      22907) == table);
  assert_true(hash_of(HEAD TABLE_TO("2097152"), 22907) != table);
  assert_true(hash_of(HEAD ", 'net': {'flows': 8}}", 22907) == 0);
  assert_true(decision_of(NULL, 22907).hash == 0);
}

TEST(what_is_not_used_does_not_count) {
  static const char old[] = HEAD ", 'nccl_max': 22899" TABLE;
  setenv("NCCL_TUNER_PLUGIN", "none", 1);
  assert_true(hash_of(HEAD TABLE, 22907) == 0);
  setenv("NCCL_TUNER_PLUGIN", "stratus", 1);
  assert_true(hash_of(HEAD TABLE, 22907) != 0);
  assert_true(hash_of(old, 22907) == 0);
  assert_true(hash_of(old, 22809) != 0);
  assert_true(hash_of(old, 0) != 0);
  uint64_t tuning = hash_of(HEAD TABLE, 22907);
  pair_set_parameters("STRATUS_CALIBRATE=ring.ll");
  assert_true(hash_of(HEAD TABLE, 22907) != tuning);
  pair_set_parameters("STRATUS_TUNER=0");
  assert_true(hash_of(HEAD TABLE, 22907) == 0);
}

/* Rows do not count in a calibration, and its cell does. */
TEST(calibration_decides_by_its_cell) {
  static const char *const plans[] = { "STRATUS_CALIBRATE=ring.ll",
                                       "STRATUS_CALIBRATE=ring.simple" };
  uint64_t hashes[2];
  setenv("NCCL_TUNER_PLUGIN", "stratus", 1);
  for (int i = 0; i < 2; i++) {
    pair_set_parameters(plans[i]);
    hashes[i] = hash_of(HEAD TABLE, 22907);
    assert_true(hash_of(HEAD "}", 22907) == hashes[i]);
    assert_true(decision_of(NULL, 22907).hash == hashes[i]);
  }
  assert_true(hashes[0] != hashes[1] && hashes[0] != 0 && hashes[1] != 0);
  setenv("NCCL_TUNER_PLUGIN", "none", 1);
  assert_true(hash_of(HEAD TABLE, 22907) == 0);
}

/* ---- what the user has set beside it ---- */

static const char *choices_of(const char *profile_text) {
  static struct decision decision;
  struct profile profile = parse(profile_text);
  decision = decision_of(&profile, 22907);
  profile_free(&profile);
  return decision.choices;
}

TEST(choices_count_where_a_profile_decides) {
  static const char *const names[] = {
    "NCCL_ALGO",       "NCCL_PROTO",       "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NRINGS", "NCCL_MAX_CTAS",    "NCCL_NTHREADS",      "NCCL_LL128_NTHREADS",
    "NCCL_BUFFSIZE",   "NCCL_LL_BUFFSIZE", "NCCL_PAT_ENABLE",    "NCCL_P2P_NET_CHUNKSIZE"
  };
  setenv("NCCL_TUNER_PLUGIN", "stratus", 1);
  uint64_t table = hash_of(HEAD TABLE, 22907);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    setenv(names[i], "1", 1);
    uint64_t one = hash_of(HEAD TABLE, 22907);
    setenv(names[i], "2", 1);
    uint64_t two = hash_of(HEAD TABLE, 22907);
    /* Nothing decides beside NCCL itself. */
    assert_true(decision_of(NULL, 22907).hash == 0);
    assert_true(hash_of(HEAD ", 'net': {'flows': 8}}", 22907) == 0);
    assert_true(hash_of(HEAD "}", 22907) == 0);
    setenv("NCCL_TUNER_PLUGIN", "none", 1);
    assert_true(hash_of(HEAD TABLE, 22907) == 0);
    setenv("NCCL_TUNER_PLUGIN", "stratus", 1);
    setenv(names[i], "", 1); /* to NCCL as good as not set */
    if (one == table || two == table || one == two || hash_of(HEAD TABLE, 22907) != table) {
      fail_msg("%s does not count", names[i]);
    }
    unsetenv(names[i]);
  }
}

TEST(equal_choices_have_one_form) {
  setenv("NCCL_TUNER_PLUGIN", "stratus", 1);
  setenv("NCCL_ALGO", "Ring, Tree", 1);
  setenv("NCCL_BUFFSIZE", "0x400000", 1);
  errno = ERANGE; /* of somebody's call */
  assert_string_equal(choices_of(HEAD TABLE), "NCCL_ALGO=ring,_tree NCCL_BUFFSIZE=4194304");
  unsetenv("NCCL_ALGO");
  uint64_t in_hexadecimal = hash_of(HEAD TABLE, 22907);
  setenv("NCCL_BUFFSIZE", "4194304", 1);
  assert_true(hash_of(HEAD TABLE, 22907) == in_hexadecimal);
  unsetenv("NCCL_BUFFSIZE");
  assert_string_equal(choices_of(HEAD TABLE), "");
  char value[2 * CHOICES_TEXT_BYTES];
  memset(value, 'r', sizeof value);
  value[sizeof value - 1] = '\0';
  setenv("NCCL_ALGO", value, 1);
  const char *cut = choices_of(HEAD TABLE);
  assert_int_equal(strlen(cut), CHOICES_TEXT_BYTES - 1);
  assert_string_equal(cut + CHOICES_TEXT_BYTES - 4, "...");
  uint64_t whole = hash_of(HEAD TABLE, 22907);
  value[sizeof value - 2] = 's'; /* beyond what is shown */
  setenv("NCCL_ALGO", value, 1);
  assert_true(hash_of(HEAD TABLE, 22907) != whole);
  unsetenv("NCCL_ALGO");
}

/* ---- peers ---- */

enum { HAS_CONNECTED = 1, HAS_PROTOCOL_ERROR = 2, HAS_SAID_BOTH = 4 };

static bool has_said(const char *here, const char *there) {
  char text[128];
  snprintf(text, sizeof text, "%s on this host", here);
  return log_capture_find(text) == 1 && log_capture_find(there) == 1;
}

struct rank {
  const struct decision *ours;
  const char *says; /* of its own */
};

/* One rank, the host's or the one that connects to it. Which of the three came about. */
static int run_rank(bool is_host, const int pipe[2], const struct rank *own,
                    const struct rank *peer) {
  struct meeting meeting = { .nics = { pair_loopback(AF_INET) }, .nic_count = 1 };
  struct connection *connection = NULL;
  int error = 0;
  settings_use_decision(own->ours);
  if (is_host) {
    meeting = meeting_open(AF_INET);
    assert_int_equal(write(pipe[1], meeting.bytes, HANDLE_BYTES), HANDLE_BYTES);
  } else {
    assert_int_equal(read(pipe[0], meeting.bytes, HANDLE_BYTES), HANDLE_BYTES);
  }
  UNTIL(error || connection) {
    error = is_host ? listener_accept(meeting.listener, &connection)
                    : connector_connect(meeting.nics, 1, -1, 0, meeting.bytes, &connection);
  }
  return (connection ? HAS_CONNECTED : 0) | (error == -EPROTO ? HAS_PROTOCOL_ERROR : 0) |
         (has_said(own->says, peer->says) ? HAS_SAID_BOTH : 0);
}

/* In processes of their own: each tells its user only once. */
static void connect_ranks(const struct rank ranks[2], int came[2]) {
  int pipes[2], status;
  pid_t pids[2];
  assert_int_equal(pipe(pipes), 0);
  for (int i = 0; i < 2; i++) {
    pids[i] = fork();
    assert_true(pids[i] >= 0);
    if (pids[i] == 0) {
      setenv("CMOCKA_TEST_ABORT", "1", 1); /* or it would go on with the parent's other tests */
      _exit(run_rank(i == 0, pipes, &ranks[i], &ranks[!i]));
    }
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    came[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    close(pipes[i]);
  }
}

#define A "profile hash aaaaaaaaaaaaaaaa"

/* Each side says both values. */
TEST(ranks_that_differ_end_at_once) {
  static const struct decision by_profile = { 0x1111, 0xaaaaaaaaaaaaaaaa, 1, "" };
  static const struct decision by_user = { 0x1111, 0xaaaa, 1, "NCCL_ALGO=ring NCCL_PROTO=ll" };
  static const struct {
    const struct decision *ours, theirs;
    const char *here, *said;
  } cases[] = {
    { &by_profile, { 0x2222, 0xbbbbbbbbbbbbbbbb, 1, "" }, A, "profile hash bbbbbbbbbbbbbbbb" },
    { &by_profile, { 0, 0, 1, "" }, A, "no profile" },
    { &by_profile,
      { 0x1111, 0xaaaaaaaaaaaaaaaa, 2, "" },
      A ", decisions 0000000000001111 of version 1",
      A ", decisions 0000000000001111 of version 2" },
    { &by_user,
      { 0x2222, 0xaaaa, 1, "NCCL_ALGO=tree NCCL_PROTO=ll" },
      "NCCL_ALGO=ring",
      "NCCL_ALGO=tree" },
    { &by_user, { 0x2222, 0xaaaa, 1, "" }, "NCCL_ALGO=ring, NCCL_PROTO=ll", "none of these" },
    { &by_user,
      { 0x2222, 0xaaaa, 1, "NCCL_ALGO=ring NCCL_BUFFSIZE=1" },
      "NCCL_PROTO=ll",
      "NCCL_BUFFSIZE=1" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int came[2];
    connect_ranks(
        (struct rank[]){ { cases[i].ours, cases[i].here }, { &cases[i].theirs, cases[i].said } },
        came);
    if (came[0] != (HAS_PROTOCOL_ERROR | HAS_SAID_BOTH) || came[1] != came[0]) {
      fail_msg("%s and %s: %d here, %d there", cases[i].here, cases[i].said, came[0], came[1]);
    }
  }
}

TEST(ranks_that_choose_alike_connect) {
  static const struct decision a = { 0x1111, 0xaaaa, 1, "" }, b = { 0x1111, 0xbbbb, 1, "" };
  int came[2];
  connect_ranks((struct rank[]){ { &a, "" }, { &b, "" } }, came);
  assert_int_equal(came[0], HAS_CONNECTED);
  assert_int_equal(came[1], HAS_CONNECTED);
}
