/* SPDX-License-Identifier: Apache-2.0 */
/* cases: runs every case of every release, each in a process of its own, as a plugin's state is the
 * process's, or one of them in this process.
 *
 *   abi HOST                all of a host's
 *   abi HOST RELEASE CASE   one, in this process, with the plugin's log
 *
 * Owns: nothing.  Threads: the main one.  Blocks: until all have ended.  Fails: as told by main's
 * exit status. */
#ifndef TESTS_ABI_CASES_H
#define TESTS_ABI_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/nccl_abi.h"
#include "tests/abi/releases.h"

/* The exit status of a case that cannot run here. */
enum { CASES_SKIP = 77 };

/* A case is a process of its own, also its threads: what is not as it should be ends it. What
 * follows the condition, if anything, is printf's. */
#define CHECK(condition, ...)                                                                      \
  ((condition) ? (void)0 : cases_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__))
#define CHECK_OK(call) CHECK((call) == NCCL_SUCCESS)
__attribute__((noreturn, format(printf, 4, 5))) void
cases_fail(const char *file, int line, const char *condition, const char *format, ...);

/* NCCL's logger: what a plugin says to it is kept, and printed when the case is over. Any thread.
 */
void cases_log(enum nccl_log_level level, unsigned long flags, const char *file, int line,
               const char *format, ...);
/* Where it is kept, a line each behind the digit of its level: CASES_LOG_BYTES, zeroed. */
enum { CASES_LOG_BYTES = 1 << 18 };
extern char *cases_log_text;
/* Lines of this level that have the part. */
int cases_log_count(enum nccl_log_level level, const char *part);

/* Where the plugins are: STRATUS_TEST_NET_PLUGIN and STRATUS_TEST_TUNER_PLUGIN, or in build. */
const char *cases_net_plugin(void);
const char *cases_tuner_plugin(void);

/* Of the case that this process runs. */
extern const struct release *cases_release;
extern int cases_variant;

struct cases_case {
  const char *name;
  void (*run)(void); /* returns, or exits with a failure */
  int variant;
};

struct cases_host {
  const char *name, *title;
  int first_net;   /* releases with an older interface of the network are left out */
  bool is_by_net;  /* of those with the same one, all but the last, too */
  bool is_of_ends; /* all but the first and the last release are left out */
  /* Interfaces of the network before v11 have no end: a thread of the plugin lives on, which
   * LeakSanitizer's own does not always survive. */
  bool leaves_threads;
  const struct cases_case *cases;    /* the last has no name */
  void (*begin)(void), (*end)(void); /* before and after each in its process; NULL: nothing */
};

/* All that there are, each in a file of its name. */
extern const struct cases_host collnet_host, fork_host, life_host, net_host, tuner_host;

#endif
