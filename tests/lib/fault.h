/* SPDX-License-Identifier: Apache-2.0 */
/* fault: makes the k-th memory allocation, or the k-th system call of a kind, fail.
 * Owns: the counters, which are the whole process's.  Threads: any; the count is of all of them.
 * Blocks: never.  Fails: cannot.
 *
 * The linker sends the calls of our objects (not of shared libraries) here with --wrap; the list is
 * in the Makefile. A test repeats an operation with k = 1, 2, ... until it runs through without a
 * failure:
 *
 *   for (unsigned long k = 1;; k++) {
 *     fault_fail_allocation(k);
 *     int result = operation();
 *     if (!fault_clear()) {
 *       break;   // the allocation number k never came: every one has failed once
 *     }
 *     assert_int_equal(result, -ENOMEM);
 *   } */
#ifndef TESTS_LIB_FAULT_H
#define TESTS_LIB_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum fault_call {
  FAULT_ALLOCATION, /* malloc and its kin, mmap */
  FAULT_SOCKET,
  FAULT_SETSOCKOPT,
  FAULT_BIND,
  FAULT_LISTEN,
  FAULT_ACCEPT, /* accept4 */
  FAULT_CONNECT,
  FAULT_SEND,    /* send, sendmsg */
  FAULT_RECEIVE, /* recv, recvmsg */
  FAULT_EPOLL_CREATE,
  FAULT_EPOLL_ADD, /* epoll_ctl; the kernel needs no memory to change or take out an entry */
  FAULT_EPOLL_WAIT,
  FAULT_EVENTFD,
  FAULT_THREAD, /* pthread_create */
  FAULT_RANDOM, /* getrandom */
  FAULT_OPEN,
  FAULT_READ,
  FAULT_CIPHERS, /* sodium_init */
  FAULT_CALL_COUNT
};

/* "socket". */
const char *fault_call_name(enum fault_call call);

/* The k-th call from now on fails with this errno, counted from 1; those after it work again. */
void fault_fail(enum fault_call call, unsigned long k, int error);
/* The same with FAULT_ALLOCATION and ENOMEM. */
void fault_fail_allocation(unsigned long k);

/* From now on one send or receive moves at most so many bytes; 0: as many as it likes. But send()
 * takes FAULT_SEND_WHOLE bytes at once: a socket that was never written to always does, and setting
 * up a connection counts on it. */
#define FAULT_SEND_WHOLE 512
void fault_shorten(size_t bytes);

/* From now on every mmap of `least` to `most` bytes fails with ENOMEM. */
void fault_refuse_mappings(size_t least, size_t most);

/* Ends all faults; true if the failure has happened. */
bool fault_clear(void);

/* Mappings made by mmap and not unmapped. */
long fault_mappings(void);

#endif
