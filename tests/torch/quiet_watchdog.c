/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded where communicators are nonblocking: PyTorch's watchdog is told that all is well,
 * without a word to NCCL.
 *
 * PyTorch 2.6 asks ncclCommGetAsyncError in two threads, its watchdog's and the one that calls
 * collectives; inside of these NCCL asks itself, too. Each ends the group's thread and frees its
 * job (src/init.cc, src/group.cc), which NCCL says not to do at the same time: a rank joins a
 * thread that is gone or waits for a job that was freed, for ever, whatever the transport. */
#include <dlfcn.h>
#include <string.h>
#include <sys/prctl.h>

int ncclCommGetAsyncError(void *comm, int *state) {
  static int (*ask)(void *, int *);
  char thread[16];
  prctl(PR_GET_NAME, thread);
  if (!strcmp(thread, "pt_nccl_watchdg")) {
    *state = 0;
    return 0;
  }
  if (!ask) /* no RTLD_NEXT: Python keeps what it loads to itself */
    ask = (int (*)(void *, int *))dlsym(dlopen("libnccl.so.2", RTLD_NOW), "ncclCommGetAsyncError");
  return ask(comm, state);
}
