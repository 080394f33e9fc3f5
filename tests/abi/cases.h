/* SPDX-License-Identifier: Apache-2.0 */
/* cases: runs every case of every release, each in a process of its own, as a plugin's state is the
 * process's, or one of them in this process.
 *
 *   abi HOST                         all of a host's
 *   abi HOST RELEASE CASE [PLUGIN]   one, in this process, with the plugin's log
 *
 * Owns: nothing.  Threads: the main one.  Blocks: until all have ended.  Fails: as told by main's
 * exit status. */
#ifndef TESTS_ABI_CASES_H
#define TESTS_ABI_CASES_H

#include <stddef.h>

/* The exit status of a case that cannot run here. */
enum { CASES_SKIP = 77 };

/* Ends a case whose interface has no end: a thread of the plugin lives on, which LeakSanitizer's
 * own does not always survive. */
void cases_leave_running(void);

/* An array of structs that begin with a name. */
struct cases_list {
  const void *items;
  size_t item_bytes, count;
};
#define CASES_LIST(array)                                                                          \
  { array, sizeof *(array), sizeof(array) / sizeof *(array) }

struct cases_host {
  const char *name, *title;
  const char *plugin_variable, *plugin; /* where the plugin is: by the environment, otherwise */
  struct cases_list releases, cases;
  void (*run)(int release, int which, const char *path); /* exits with a failure */
};

/* All that there are, each in a file of its name. */
extern const struct cases_host collnet_host, fork_host, life_host, net_host, tuner_host;

#endif
