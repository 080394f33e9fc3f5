/* SPDX-License-Identifier: Apache-2.0 */
/* Where the thread of a NIC runs: lists of CPUs, and the decision on invented machines. */
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/topology.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/plugin/placement.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static cpu_set_t cpus(const char *text) {
  cpu_set_t out;
  assert_true(!*text || placement_parse(text, &out));
  if (!*text) {
    CPU_ZERO(&out);
  }
  return out;
}

LOG_CAPTURE_TEST(lists_are_read_and_written) {
  static const char *const good[] = { "0", "0-3", "0-3,8", "1,3,5-7,1023" };
  static const char *const bad[] = {
    "", "a", "0-", "-1", "3-1", "0,", ",0", "0-3 8", "1024", "0-1024", "99999999999999999999",
  };
  cpu_set_t set;
  char text[PLACEMENT_TEXT_MAX];
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    assert_true(placement_parse(good[i], &set));
    assert_string_equal(placement_format(&set, text), good[i]);
  }
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    assert_false(placement_parse(bad[i], &set));
  }
  CPU_ZERO(&set);
  assert_string_equal(placement_format(&set, text), "");
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu += 2) {
    CPU_SET(cpu, &set);
  }
  placement_format(&set, text);
  assert_string_equal(text + strlen(text) - 4, ",...");
}

struct decision {
  const char *parameter, *allowed, *near, *expected, *why;
  int warnings;
};

static void check(const struct decision *want) {
  log_capture_start();
  cpu_set_t allowed = cpus(want->allowed), near = cpus(want->near), chosen;
  char text[PLACEMENT_TEXT_MAX];
  const char *why = placement_decide(want->parameter, &allowed, &near, &chosen);
  assert_string_equal(placement_format(&chosen, text), want->expected);
  if (!strstr(why, want->why)) {
    fail_msg("\"%s\", not \"%s\"", why, want->why);
  }
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), want->warnings);
}

LOG_CAPTURE_TEST(decisions) {
  static const struct decision table[] = {
    /* left to us: near the NIC, within what the process has */
    { "", "0-95", "24-47,72-95", "24-47,72-95", "near the NIC", 0 },
    { "", "0-31", "24-47,72-95", "24-31", "near the NIC", 0 },
    { "", "0-23", "24-47,72-95", "", "no CPUs near", 0 },
    { "", "0-24", "24-47,72-95", "", "no CPUs near", 0 }, /* one is not enough to leave the rest */
    { "", "24-47", "24-47,72-95", "", "all of", 0 },
    { "", "0-15", "0-15", "", "all of", 0 },
    { "", "0-95", "", "", "not known", 0 },
    /* pinned by the user or a batch system */
    { "", "24-27", "24-47,72-95", "", "few CPUs", 0 },
    { "", "3", "24-47,72-95", "", "few CPUs", 0 },
    { "", "22-26", "24-47", "24-26", "near the NIC", 0 },
    /* the user's word */
    { "none", "0-95", "24-47,72-95", "", "none", 0 },
    { "0-3,8", "0-95", "24-47,72-95", "0-3,8", "STRATUS_THREAD_CPUS", 0 },
    { "5", "0-95", "24-47", "5", "STRATUS_THREAD_CPUS", 0 },
    { "2", "2-3", "24-47", "2", "STRATUS_THREAD_CPUS", 0 },
    { "0-7", "4-95", "24-47", "4-7", "STRATUS_THREAD_CPUS", 1 },
    { "96-99", "0-95", "24-47", "", "allowed", 1 },
    { "fast", "0-95", "24-47", "24-47", "near the NIC", 1 },
  };
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    check(&table[i]);
  }
}

LOG_CAPTURE_TEST(warnings_say_what_is_accepted) {
  cpu_set_t allowed = cpus("0-7"), near = cpus(""), chosen;
  placement_decide("0-3:2", &allowed, &near, &chosen);
  assert_true(log_capture_find("STRATUS_THREAD_CPUS=0-3:2 is ignored; accepted are none, or CPUs") >
              0);
  placement_decide("8-9", &allowed, &near, &chosen);
  assert_true(log_capture_find("may run on CPUs 0-7 only") > 0);
}

/* From the place of a NIC to the decision. */
LOG_CAPTURE_TEST(invented_machines) {
  static const struct {
    const char *machine, *function, *all, *expected;
    int node;
  } table[] = {
    { "aws-p4d", "/0000:00:05.0", "0-95", "0-23,48-71", 0 },
    { "aws-p4d", "/0000:00:06.0", "0-95", "24-47,72-95", 1 },
    { "gcp-a2-highgpu-1g", "/0000:00:05.0", "0", "", 0 }, /* one node */
    { "gcp-a3-mega", "/0000:80:00.0", "0-95", "", -1 },   /* the firmware does not tell */
  };
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
    char root[64], text[PLACEMENT_TEXT_MAX];
    snprintf(root, sizeof(root), "tests/data/machines/%s", table[i].machine);
    cpu_set_t allowed = cpus(table[i].all), near, chosen;
    assert_int_equal(topology_near(root, table[i].function, &near), table[i].node);
    placement_decide("", &allowed, &near, &chosen);
    assert_string_equal(placement_format(&chosen, text), table[i].expected);
  }
}

/* The thread of this name in this process; 0: there is none. */
static pid_t find_thread(const char *name) {
  DIR *tasks = opendir("/proc/self/task");
  pid_t found = 0;
  assert_non_null(tasks);
  for (struct dirent *entry; (entry = readdir(tasks));) {
    char path[64], text[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", entry->d_name);
    FILE *file = fopen(path, "r");
    if (file && fgets(text, sizeof(text), file) && !strncmp(text, name, strlen(name))) {
      found = (pid_t)atoi(entry->d_name);
    }
    if (file) {
      fclose(file);
    }
  }
  closedir(tasks);
  return found;
}

LOG_CAPTURE_TEST(the_engine_obeys) {
  struct nic nic = { .name = "place0" };
  cpu_set_t allowed, actual;
  assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  unsigned last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) {
    last--;
  }
  CPU_SET(last, &nic.thread_cpus);
  struct engine *engine;
  assert_int_equal(engine_get(&nic, ENGINE_LISTENS, &engine), 0);
  pid_t thread = 0;
  for (unsigned ms = 0; ms < 10000 && thread == 0; ms++) { /* it names itself */
    poll(NULL, 0, 1);
    thread = find_thread("stratus place0");
  }
  assert_true(thread > 0);
  assert_int_equal(sched_getaffinity(thread, sizeof(actual), &actual), 0);
  assert_true(CPU_EQUAL(&actual, &nic.thread_cpus));
  engine_stop_all(0, NULL);
}
