/* SPDX-License-Identifier: Apache-2.0 */
/* fault: makes the k-th memory allocation, or the k-th system call of a kind, fail.
 * Owns: the counters, which are the whole process's.  Threads: any; the count is of all of them.
 * Blocks: never.  Fails: cannot.
 *
 * The linker sends the calls of our objects (not of shared libraries) here with --wrap; the list is
 * in the Makefile. each_failure.h repeats an operation with k = 1, 2, ... until it runs through
 * without a failure. */
#ifndef TESTS_LIB_FAULT_H
#define TESTS_LIB_FAULT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Kind, how it is called in messages, and the errno that it fails with unless a test wants another.
 */
#define FAULT_CALLS(X)                                                                             \
  X(ALLOCATION, "allocation", ENOMEM) /* malloc's kin, vasprintf, memstreams, mmap, tsearch */     \
  X(SOCKET, "socket", EMFILE)                                                                      \
  X(SETSOCKOPT, "setsockopt", ENOMEM)                                                              \
  X(GETSOCKOPT, "getsockopt", ENOBUFS)                                                             \
  X(SOCKET_NAME, "getsockname", ENOBUFS) /* and getpeername */                                     \
  X(BIND, "bind", EADDRINUSE)                                                                      \
  X(LISTEN, "listen", EADDRINUSE)                                                                  \
  X(ACCEPT, "accept4", EMFILE)                                                                     \
  X(CONNECT, "connect", ETIMEDOUT)                                                                 \
  X(SEND, "send", ENOBUFS)          /* and sendmsg, sendto */                                      \
  X(RECEIVE, "recv", ECONNRESET)    /* and recvmsg */                                              \
  X(RESOLVE, "getaddrinfo", ENOMEM) /* EAI_SYSTEM */                                               \
  X(EPOLL_CREATE, "epoll_create1", EMFILE)                                                         \
  X(EPOLL_ADD, "epoll_ctl",                                                                        \
    ENOMEM) /* the kernel needs no memory to change or take out an entry */                        \
  X(EPOLL_WAIT, "epoll_wait", EINTR)                                                               \
  X(POLL, "poll", EINTR)        /* and ppoll */                                                    \
  X(EVENTFD, "eventfd", EMFILE) /* and signalfd */                                                 \
  X(TIMERFD, "timerfd_create", EMFILE)                                                             \
  X(PIPE, "pipe2", EMFILE) /* and pipe, socketpair */                                              \
  X(FORK, "fork", EAGAIN)                                                                          \
  X(THREAD, "pthread_create", EAGAIN)                                                              \
  X(CONDITION, "pthread_cond_init", ENOMEM) /* and pthread_mutex_init, pthread_condattr_init */    \
  X(AFFINITY, "pthread_setaffinity_np", EINVAL)                                                    \
  X(RANDOM, "getrandom", ENOSYS)                                                                   \
  X(OPEN, "open", EMFILE)   /* and openat, fopen, fdopen, opendir, fdopendir, scandir */           \
  X(READ, "read", EIO)      /* and pread, readlink */                                              \
  X(WRITE, "write", ENOSPC) /* and rename */                                                       \
  X(STATUS, "stat", EACCES) /* and fstat, lstat, fstatat */                                        \
  X(MAKE_DIRECTORY, "mkdir", ENOSPC)                                                               \
  X(LIMIT, "setrlimit", EPERM) /* and getrlimit */                                                 \
  X(LIBRARY, "dlopen", ENOENT) /* and dlsym */                                                     \
  X(SEAL, "EVP", EIO)          /* what of libcrypto can fail: decryption, keys, contexts */

enum fault_call {
#define FAULT_KIND(kind, name, error) FAULT_##kind,
  FAULT_CALLS(FAULT_KIND)
#undef FAULT_KIND
      FAULT_CALL_COUNT
};

/* "socket". */
const char *fault_call_name(enum fault_call call);
/* EMFILE. */
int fault_call_error(enum fault_call call);

/* The k-th call from now on fails with this errno, counted from 1; those after it work again. */
void fault_fail(enum fault_call call, unsigned long k, int error);

/* From now on each call of the kind fails with this errno, as under a filter of system calls. */
void fault_refuse(enum fault_call call, int error);
/* The same of setsockopt and getsockopt for one option. */
void fault_refuse_option(int level, int option, int error);

/* From now on one send or receive moves at most so many bytes; 0: as many as it likes. But send()
 * takes FAULT_SEND_WHOLE bytes at once: a socket that was never written to always does, and setting
 * up a connection counts on it. */
#define FAULT_SEND_WHOLE 640
void fault_shorten(size_t bytes);

/* From now on every mmap of `least` to `most` bytes fails with ENOMEM. */
void fault_refuse_mappings(size_t least, size_t most);

/* Ends all faults; true if the failure has happened. */
bool fault_clear(void);

/* Whether there was a call of this kind since fault_forget. */
bool fault_is_called(enum fault_call call);
void fault_forget(void);

/* Mappings made by mmap and not unmapped. */
long fault_mappings(void);

#endif
