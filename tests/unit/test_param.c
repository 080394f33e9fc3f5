/* SPDX-License-Identifier: Apache-2.0 */
/* STRATUS_* variables: good values, bad values, unknown names, generated documents. */
#include "common/param.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/version.h"
#include "tests/lib/fault.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

/* Loads an environment of up to three variables. */
static void load(const char *first, const char *second, const char *third) {
  char *environment[] = { (char *)(uintptr_t)first, (char *)(uintptr_t)second,
                          (char *)(uintptr_t)third, NULL };
  param_load(environment);
}

static int stop(void **state) {
  log_capture_stop();
  load(NULL, NULL, NULL);
  return 0;
}

#define PARAM_TEST(function) UNIT_TEST_WITH(function, log_capture_set_up, stop)

static void *read_one(void *unused) {
  return (void *)(uintptr_t)param_size(PARAM_CHUNK_BYTES);
}

/* Needs a process in which nobody has read a parameter: runs first. */
PARAM_TEST(first_read_is_thread_safe) {
  setenv("STRATUS_CHUNK_BYTES", "64K", 1);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, read_one, NULL), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *bytes;
    pthread_join(threads[i], &bytes);
    assert_int_equal((uintptr_t)bytes, 65536);
  }
  unsetenv("STRATUS_CHUNK_BYTES");
}

/* At the ends of their ranges, too. */
PARAM_TEST(good_values_are_taken) {
  load("STRATUS_FLOWS=64", "STRATUS_CHUNK_BYTES=4k", "STRATUS_PROGRESS=Thread");
  assert_int_equal(param_int(PARAM_FLOWS), 64);
  assert_true(param_is_set(PARAM_FLOWS));
  assert_int_equal(param_size(PARAM_CHUNK_BYTES), 4096);
  assert_int_equal(param_enum(PARAM_PROGRESS), PARAM_PROGRESS_THREAD);
  load("STRATUS_LINK_TIMEOUT=250ms", "STRATUS_TUNER=off", "STRATUS_PROFILE=/a b/c=d");
  assert_true(param_duration_ns(PARAM_LINK_TIMEOUT) == 250 * NS_PER_MS);
  assert_false(param_bool(PARAM_TUNER));
  assert_string_equal(param_string(PARAM_PROFILE), "/a b/c=d");
  assert_int_equal(param_int(PARAM_FLOWS), 0); /* the earlier load is gone */
  load("STRATUS_CHUNK_BYTES=4M", "STRATUS_SOCKET_BUFFER_BYTES=0", "STRATUS_DSCP=63");
  assert_int_equal(param_size(PARAM_CHUNK_BYTES), 4 << 20);
  assert_true(param_is_set(PARAM_SOCKET_BUFFER_BYTES));
  assert_int_equal(param_int(PARAM_DSCP), 63);
  load("STRATUS_DSCP=-1", NULL, NULL);
  assert_true(param_is_set(PARAM_DSCP));
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

PARAM_TEST(bad_value_is_one_warning_that_says_all) {
  load("STRATUS_FLOWS=65", NULL, NULL);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
  assert_string_equal(log_capture_text(0),
                      "STRATUS_FLOWS=\"65\" is not accepted; it takes 0..64 flows."
                      " The default, 0, is kept.");
  assert_int_equal(param_int(PARAM_FLOWS), 0);
  assert_false(param_is_set(PARAM_FLOWS));
}

PARAM_TEST(bad_values_keep_the_default) {
  static const char *const bad[] = {
    "STRATUS_FLOWS=-1",
    "STRATUS_FLOWS=eight",
    "STRATUS_FLOWS=8 ",
    "STRATUS_FLOWS=99999999999999999999",
    "STRATUS_CHUNK_BYTES=4095",
    "STRATUS_CHUNK_BYTES=5M",
    "STRATUS_CHUNK_BYTES=16E",
    "STRATUS_CHUNK_BYTES=18446744073709551615",
    "STRATUS_SOCKET_BUFFER_BYTES=1",
    "STRATUS_PROGRESS=fast",
    "STRATUS_PROGRESS=auto|inline",
    "STRATUS_LINK_TIMEOUT=10 s",
    "STRATUS_LINK_TIMEOUT=1ms",
    "STRATUS_LINK_TIMEOUT=2h",
    "STRATUS_TUNER=maybe",
    "STRATUS_LOG=debug",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    log_capture_start();
    load(bad[i], "PATH=/bin", NULL);
    for (int id = 0; id < PARAM_COUNT; id++) {
      assert_false(param_is_set((enum param_id)id));
    }
    assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
    char shown[128];
    const char *value = strchr(bad[i], '=') + 1;
    snprintf(shown, sizeof shown, "%.*s\"%s\" is not", (int)(value - bad[i]), bad[i], value);
    assert_int_equal(log_capture_find(shown), 1);
    assert_int_equal(param_int(PARAM_FLOWS), 0);
    assert_int_equal(param_size(PARAM_CHUNK_BYTES), 128 << 10);
    assert_int_equal(param_enum(PARAM_PROGRESS), PARAM_PROGRESS_AUTO);
    assert_true(param_duration_ns(PARAM_LINK_TIMEOUT) == 900 * NS_PER_S);
    assert_true(param_bool(PARAM_TUNER));
    assert_int_equal(param_int(PARAM_DSCP), -1);
    assert_string_equal(param_string(PARAM_PROFILE), "");
  }
}

PARAM_TEST(similar_names_and_empty_values_set_nothing) {
  load("STRATUS_FLOWS_MAX=9", "STRATUS_FLOW=9", "XSTRATUS_FLOWS=9");
  assert_false(param_is_set(PARAM_FLOWS));
  load("STRATUS_FLOWS=", "STRATUS_PROFILE=", "STRATUS_PROGRESS=");
  assert_false(param_is_set(PARAM_FLOWS));
  assert_false(param_is_set(PARAM_PROFILE));
  assert_int_equal(param_enum(PARAM_PROGRESS), PARAM_PROGRESS_AUTO);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

PARAM_TEST(out_of_memory_is_a_warning) {
  fault_fail(FAULT_ALLOCATION, 1, ENOMEM);
  load("STRATUS_PROFILE=/some/path", NULL, NULL);
  assert_true(fault_clear());
  assert_string_equal(param_string(PARAM_PROFILE), "");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
}

PARAM_TEST(unknown_name_gets_the_nearest_or_advice) {
  char *environment[] = {
    (char *)(uintptr_t) "STRATUS_FLOW=8",       (char *)(uintptr_t) "STRATUS_CHUNKBYTES=1",
    (char *)(uintptr_t) "STRATUS_LINK_TIMEOUT", (char *)(uintptr_t) "STRATUS_TEST_SEED=1",
    (char *)(uintptr_t) "STRATUS_FLOWS=8",      (char *)(uintptr_t) "NCCL_NET=stratus",
    (char *)(uintptr_t) "STRATUS_=1",           NULL,
  };
  assert_int_equal(param_warn_unknown(environment), 3);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 3);
  assert_string_equal(log_capture_text(0),
                      "STRATUS_FLOW is not a variable of stratus " STRATUS_VERSION
                      " and is ignored; the nearest is STRATUS_FLOWS");
  assert_int_equal(log_capture_find("the nearest is STRATUS_CHUNK_BYTES"), 1);
  assert_int_equal(log_capture_find("STRATUS_ is not a variable of stratus " STRATUS_VERSION
                                    " and is ignored; unset it; stratus params lists"),
                   1);
}

/* ---- switches, and what protects ---- */

/* Which words those are: test_quantity.c. */
PARAM_TEST(every_switch_takes_the_same_words) {
  load("STRATUS_ENCRYPT=yes", "STRATUS_RDMA=True", "STRATUS_CHECKSUM=1");
  assert_int_equal(param_enum(PARAM_ENCRYPT), PARAM_ENCRYPT_ON);
  assert_int_equal(param_enum(PARAM_RDMA), PARAM_RDMA_ON);
  assert_true(param_bool(PARAM_CHECKSUM));
  load("STRATUS_ENCRYPT=no", "STRATUS_RDMA=False", "STRATUS_CHECKSUM=0");
  assert_int_equal(param_enum(PARAM_ENCRYPT), PARAM_ENCRYPT_OFF);
  assert_int_equal(param_enum(PARAM_RDMA), PARAM_RDMA_OFF);
  assert_true(param_is_set(PARAM_CHECKSUM) && !param_bool(PARAM_CHECKSUM));
  assert_null(param_refusal());
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  /* what is no switch takes none of them */
  load("STRATUS_PROGRESS=1", "STRATUS_LOG=on", NULL);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 2);
}

PARAM_TEST(what_protects_is_refused_and_not_weakened) {
  static const char *const bad[] = { "STRATUS_ENCRYPT=",     "STRATUS_ENCRYPT=auto",
                                     "STRATUS_ENCRYPT= on",  "STRATUS_SECRET=",
                                     "STRATUS_SECRET_FILE=", "STRATUS_CHECKSUM=2" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    load(bad[i], NULL, NULL);
    assert_non_null(param_refusal());
    assert_non_null(strstr(param_refusal(), "no connection is made"));
    assert_non_null(strstr(param_refusal(), "unset"));
  }
  load("STRATUS_SECRET=very secret indeed", "STRATUS_ENCRYPT=on", "STRATUS_CHECKSUM=1");
  assert_null(param_refusal());
  load("STRATUS_CHUNK_BYTES=plenty", NULL, NULL);
  assert_null(param_refusal());
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1); /* that of the chunk */
  /* a long value, as of a secret in the wrong variable, is cut; the remedy is told all the same */
  char text[4096];
  memset(text, 'x', sizeof text - 1);
  memcpy(text, "STRATUS_ENCRYPT=", 16);
  text[sizeof text - 1] = '\0';
  load(text, NULL, NULL);
  assert_non_null(strstr(param_refusal(), "unset"));
  fault_fail(FAULT_ALLOCATION, 1, ENOMEM);
  load("STRATUS_SECRET=very secret indeed", NULL, NULL);
  assert_true(fault_clear());
  assert_non_null(strstr(param_refusal(), "STRATUS_SECRET cannot be kept: out of memory"));
  assert_null(strstr(param_refusal(), "indeed"));
}

PARAM_TEST(misspelled_protection_is_refused) {
  static const struct {
    const char *variable, *meant;
  } cases[] = {
    { "STRATUS_ENCRYPTION=on", " STRATUS_ENCRYPT " },
    { "STRATUS_ENCRPYT=on", " STRATUS_ENCRYPT " },
    { "STRATUS_ENCRPYTION=on", " STRATUS_ENCRYPT " },
    { "STRATUS_ENABLE_ENCRYPTION=1", " STRATUS_ENCRYPT " },
    { "STRATUS_TCP_ENCRYPT=on", " STRATUS_ENCRYPT " },
    { "STRATUS_encrypt=on", " STRATUS_ENCRYPT " },
    { "STRATUS_CRYPT=on", " STRATUS_ENCRYPT " },
    { "STRATUS_ENCRYPTED=", " STRATUS_ENCRYPT " },
    { "STRATUS_SECRETFILE=/x", " STRATUS_SECRET_FILE " },
    { "STRATUS_SECRET_PATH=/x", " STRATUS_SECRET_FILE " },
    { "STRATUS_SECRETS=x", " STRATUS_SECRET " },
    { "STRATUS_JOB_SECRET=x", " STRATUS_SECRET " },
    { "STRATUS_CHECKSUMS=1", " STRATUS_CHECKSUM " },
    { "STRATUS_CHEKSUM=1", " STRATUS_CHECKSUM " },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    load("STRATUS_FLOWS=2", cases[i].variable, NULL);
    if (!param_refusal() || !strstr(param_refusal(), cases[i].meant)) {
      fail_msg("%s: %s", cases[i].variable, param_refusal() ? param_refusal() : "is taken");
    }
    assert_int_equal(param_warn_unknown((char *[]){ (char *)(uintptr_t)cases[i].variable, NULL }),
                     0);
  }
}

/* Of other programs, or a misspelled name of what does not protect: the job goes on. */
PARAM_TEST(other_unknown_names_are_ignored) {
  static const char *const others[] = {
    "STRATUS_HOME",          "STRATUS_HOST",
    "STRATUS_SERVER",        "STRATUS_NODE_NAME",
    "STRATUS_CLUSTER_ID",    "STRATUS_REGION",
    "STRATUS_SERVICE_HOST",  "STRATUS_PORT",
    "STRATUS_SELECT",        "STRATUS_RESET",
    "STRATUS_RECORDS",       "STRATUS_PROFILE_STRICT",
    "STRATUS_CHUNK_BYTE",    "STRATUS_SET",
    "STRATUS_SECONDS",       "STRATUS_PROFILES",
    "STRATUS_CHECK",         "STRATUS_SOCKET_PATH",
    "STRATUS_DIR",           "STRATUS_CHANNELS",
    "STRATUS_RED_TEAM",      "STRATUS_",
    "STRATUS_SOCKET_BUFFER", "STRATUS_VERSION",
    "STRATUS_PYTHON",        "STRATUS_TEST_ENCRYPT",
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char variable[64];
    snprintf(variable, sizeof variable, "%s=1", others[i]);
    load(variable, NULL, NULL);
    if (param_refusal()) {
      fail_msg("%s: %s", variable, param_refusal());
    }
  }
}

PARAM_TEST(the_list_has_every_variable_and_its_value) {
  load("STRATUS_CHUNK_BYTES=1M", NULL, NULL);
  char *list = NULL;
  size_t bytes;
  FILE *to = open_memstream(&list, &bytes);
  assert_non_null(to);
  param_print(to);
  assert_int_equal(fclose(to), 0);
  for (int id = 0; id < PARAM_COUNT; id++) {
    assert_non_null(strstr(list, param_name((enum param_id)id)));
  }
  const char *line = strstr(list, "STRATUS_CHUNK_BYTES");
  assert_non_null(strstr(line, "1M"));
  assert_non_null(strstr(line, "(set)"));
  free(list);
}
