/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped calls of the C library, and of libcrypto. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "tests/lib/fault_state.h"

const char *fault_call_name(enum fault_call call) {
  static const char *const names[FAULT_CALL_COUNT] = {
#define NAME(kind, name, error) name,
    FAULT_CALLS(NAME)
  };
  return names[call];
}

int fault_call_error(enum fault_call call) {
  static const int errors[FAULT_CALL_COUNT] = {
#define ERROR(kind, name, error) error,
    FAULT_CALLS(ERROR)
  };
  return errors[call];
}

/* The call, and what stands before it. */
#define WRAPPED(result, name, parameters)                                                          \
  result __real_##name parameters;                                                                 \
  result __wrap_##name parameters

/* A call that gives `failed` when it has to fail, with errno set, and else does what it does. */
#define CALL(kind, result, failed, name, parameters, arguments)                                    \
  WRAPPED(result, name, parameters);                                                               \
  result __wrap_##name parameters {                                                                \
    return fault_is_due(FAULT_##kind) ? (failed) : __real_##name arguments;                        \
  }

/* ---- memory ---- */

CALL(ALLOCATION, void *, NULL, malloc, (size_t bytes), (bytes))
CALL(ALLOCATION, void *, NULL, calloc, (size_t count, size_t bytes), (count, bytes))
CALL(ALLOCATION, void *, NULL, realloc, (void *memory, size_t bytes), (memory, bytes))
CALL(ALLOCATION, void *, NULL, reallocarray, (void *memory, size_t count, size_t bytes),
     (memory, count, bytes))
CALL(ALLOCATION, char *, NULL, strdup, (const char *text), (text))
CALL(ALLOCATION, char *, NULL, strndup, (const char *text, size_t bytes), (text, bytes))
CALL(ALLOCATION, int, -1, vasprintf, (char **text, const char *format, va_list arguments),
     (text, format, arguments))
CALL(ALLOCATION, FILE *, NULL, open_memstream, (char **text, size_t *bytes), (text, bytes))
CALL(ALLOCATION, int, ENOMEM, posix_memalign, (void **memory, size_t alignment, size_t bytes),
     (memory, alignment, bytes))
CALL(ALLOCATION, void *, NULL, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))
CALL(ALLOCATION, void *, NULL, tsearch, (const void *key, void **root, __compar_fn_t compare),
     (key, root, compare))

int __wrap_asprintf(char **text, const char *format, ...);
int __wrap_asprintf(char **text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = __wrap_vasprintf(text, format, arguments);
  va_end(arguments);
  return length;
}

/* ---- sockets ---- */

CALL(SOCKET, int, -1, socket, (int family, int type, int protocol), (family, type, protocol))

/* Of these two an option may be refused. */
#define OPTION_CALL(kind, name, value_type, size_type)                                             \
  WRAPPED(int, name, (int fd, int level, int option, value_type value, size_type bytes));          \
  int __wrap_##name(int fd, int level, int option, value_type value, size_type bytes) {            \
    return fault_is_refused(level, option) || fault_is_due(FAULT_##kind)                           \
               ? -1                                                                                \
               : __real_##name(fd, level, option, value, bytes);                                   \
  }
OPTION_CALL(SETSOCKOPT, setsockopt, const void *, socklen_t)
OPTION_CALL(GETSOCKOPT, getsockopt, void *, socklen_t *)

CALL(SOCKET_NAME, int, -1, getsockname, (int fd, struct sockaddr *address, socklen_t *bytes),
     (fd, address, bytes))
CALL(SOCKET_NAME, int, -1, getpeername, (int fd, struct sockaddr *address, socklen_t *bytes),
     (fd, address, bytes))
CALL(BIND, int, -1, bind, (int fd, const struct sockaddr *address, socklen_t bytes),
     (fd, address, bytes))
CALL(LISTEN, int, -1, listen, (int fd, int backlog), (fd, backlog))
CALL(ACCEPT, int, -1, accept4, (int fd, struct sockaddr *address, socklen_t *bytes, int flags),
     (fd, address, bytes, flags))
CALL(CONNECT, int, -1, connect, (int fd, const struct sockaddr *address, socklen_t bytes),
     (fd, address, bytes))
CALL(SEND, ssize_t, -1, sendto,
     (int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t size),
     (fd, data, bytes, flags, to, size))
CALL(RESOLVE, int, EAI_SYSTEM, getaddrinfo,
     (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out),
     (host, port, hints, out))

WRAPPED(ssize_t, send, (int fd, const void *data, size_t bytes, int flags));
WRAPPED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags));
WRAPPED(ssize_t, recv, (int fd, void *data, size_t bytes, int flags));
WRAPPED(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags));

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags) {
  size_t part = fault_shortened(bytes);
  if (part < FAULT_SEND_WHOLE) {
    part = bytes < FAULT_SEND_WHOLE ? bytes : FAULT_SEND_WHOLE;
  }
  return fault_is_due(FAULT_SEND) ? -1 : __real_send(fd, data, part, flags);
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags) {
  int type = SOCK_STREAM;
  socklen_t size = sizeof type;
  __real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
  size_t part = type == SOCK_STREAM ? fault_shortened(bytes) : bytes; /* a datagram would be cut */
  return fault_is_due(FAULT_RECEIVE) ? -1 : __real_recv(fd, data, part, flags);
}

enum { PARTS_MAX = 8 };

/* The message with fewer bytes; `parts` is the place for its new parts. */
static struct msghdr shorten(const struct msghdr *message, struct iovec parts[PARTS_MAX]) {
  struct msghdr shorter = *message;
  size_t left = fault_shortened(SIZE_MAX);
  shorter.msg_iov = parts;
  shorter.msg_iovlen = 0;
  for (size_t i = 0; i < message->msg_iovlen && i < PARTS_MAX && left > 0; i++) {
    parts[i] = message->msg_iov[i];
    parts[i].iov_len = parts[i].iov_len < left ? parts[i].iov_len : left;
    left -= parts[i].iov_len;
    shorter.msg_iovlen++;
  }
  return shorter;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags) {
  struct iovec parts[PARTS_MAX];
  struct msghdr shorter = shorten(message, parts);
  return fault_is_due(FAULT_SEND) ? -1 : __real_sendmsg(fd, &shorter, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags) {
  struct iovec parts[PARTS_MAX];
  struct msghdr shorter = shorten(message, parts);
  return fault_is_due(FAULT_RECEIVE) ? -1 : __real_recvmsg(fd, &shorter, flags);
}
/* ---- readiness, processes, threads ---- */

CALL(EPOLL_CREATE, int, -1, epoll_create1, (int flags), (flags))
CALL(EPOLL_WAIT, int, -1, epoll_wait,
     (int epoll_fd, struct epoll_event *events, int count, int timeout_ms),
     (epoll_fd, events, count, timeout_ms))
CALL(POLL, int, -1, poll, (struct pollfd * fds, nfds_t count, int timeout_ms),
     (fds, count, timeout_ms))
CALL(POLL, int, -1, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
     (fds, count, timeout, mask))
CALL(EVENTFD, int, -1, eventfd, (unsigned count, int flags), (count, flags))
CALL(EVENTFD, int, -1, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
CALL(TIMERFD, int, -1, timerfd_create, (int clock, int flags), (clock, flags))
CALL(PIPE, int, -1, pipe2, (int fds[2], int flags), (fds, flags))
CALL(PIPE, int, -1, pipe, (int fds[2]), (fds))
CALL(PIPE, int, -1, socketpair, (int family, int type, int protocol, int fds[2]),
     (family, type, protocol, fds))
CALL(FORK, pid_t, -1, fork, (void), ())
CALL(THREAD, int, errno, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument))
CALL(CONDITION, int, errno, pthread_cond_init,
     (pthread_cond_t * condition, const pthread_condattr_t *attributes), (condition, attributes))
CALL(CONDITION, int, errno, pthread_mutex_init,
     (pthread_mutex_t * mutex, const pthread_mutexattr_t *attributes), (mutex, attributes))
CALL(CONDITION, int, errno, pthread_condattr_init, (pthread_condattr_t * attributes), (attributes))
CALL(AFFINITY, int, errno, pthread_setaffinity_np,
     (pthread_t thread, size_t bytes, const cpu_set_t *cpus), (thread, bytes, cpus))
CALL(LIMIT, int, -1, setrlimit, (__rlimit_resource_t resource, const struct rlimit *limit),
     (resource, limit))
CALL(LIMIT, int, -1, getrlimit, (__rlimit_resource_t resource, struct rlimit *limit),
     (resource, limit))

WRAPPED(int, epoll_ctl, (int epoll_fd, int operation, int fd, struct epoll_event *event));
int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event) {
  bool can_fail = operation == EPOLL_CTL_ADD;
  return can_fail && fault_is_due(FAULT_EPOLL_ADD)
             ? -1
             : __real_epoll_ctl(epoll_fd, operation, fd, event);
}

/* ---- files ---- */

CALL(OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
CALL(OPEN, FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
CALL(OPEN, DIR *, NULL, opendir, (const char *path), (path))
CALL(OPEN, DIR *, NULL, fdopendir, (int fd), (fd))
CALL(OPEN, int, -1, scandir,
     (const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (path, entries, filter, compare))
CALL(READ, ssize_t, -1, read, (int fd, void *data, size_t bytes), (fd, data, bytes))
CALL(READ, ssize_t, -1, pread, (int fd, void *data, size_t bytes, off_t from),
     (fd, data, bytes, from))
CALL(READ, ssize_t, -1, readlink, (const char *path, char *target, size_t bytes),
     (path, target, bytes))

/* The kernel has no reason to refuse 1 to an eventfd (eventfd_write, fs/eventfd.c). */
static bool is_eventfd(int fd) {
  static const char kind[] = "anon_inode:[eventfd]";
  char path[32], target[sizeof kind];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return __real_readlink(path, target, sizeof target) == sizeof kind - 1 &&
         memcmp(target, kind, sizeof kind - 1) == 0;
}

WRAPPED(ssize_t, write, (int fd, const void *data, size_t bytes));
ssize_t __wrap_write(int fd, const void *data, size_t bytes) {
  return !is_eventfd(fd) && fault_is_due(FAULT_WRITE) ? -1 : __real_write(fd, data, bytes);
}

CALL(WRITE, int, -1, rename, (const char *from, const char *to), (from, to))
CALL(STATUS, int, -1, stat, (const char *path, struct stat *out), (path, out))
CALL(STATUS, int, -1, lstat, (const char *path, struct stat *out), (path, out))
CALL(STATUS, int, -1, fstat, (int fd, struct stat *out), (fd, out))
CALL(STATUS, int, -1, fstatat, (int directory, const char *path, struct stat *out, int flags),
     (directory, path, out, flags))
CALL(MAKE_DIRECTORY, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(RANDOM, ssize_t, -1, getrandom, (void *data, size_t bytes, unsigned flags),
     (data, bytes, flags))

WRAPPED(int, open, (const char *path, int flags, ...));
int __wrap_open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fault_is_due(FAULT_OPEN) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int directory, const char *path, int flags, ...);
__attribute__((weak)) int __wrap_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fault_is_due(FAULT_OPEN) ? -1 : __real_openat(directory, path, flags, mode);
}

/* ---- libraries; weak, as openat is: a test may have its own ---- */

__attribute__((weak)) void *__wrap_dlopen(const char *name, int flags);
__attribute__((weak)) void *__wrap_dlsym(void *library, const char *name);
CALL(LIBRARY, void *, NULL, dlopen, (const char *name, int flags), (name, flags))

/* ---- libcrypto, whose functions are found by dlsym ---- */

static void *(*real_new)(void);
static int (*real_init)(void *, const void *, void *, const uint8_t *, const uint8_t *, int);
static int (*real_final)(void *, uint8_t *, int *);

static void *new_context(void) {
  return fault_is_due(FAULT_SEAL) ? NULL : real_new();
}
static int init(void *context, const void *cipher, void *engine, const uint8_t *key,
                const uint8_t *nonce, int direction) {
  return fault_is_due(FAULT_SEAL) ? 0 : real_init(context, cipher, engine, key, nonce, direction);
}
static int final(void *context, uint8_t *to, int *bytes) {
  return fault_is_due(FAULT_SEAL) ? 0 : real_final(context, to, bytes);
}

/* `ours` in the place of what was found, which `real` keeps. */
static void *stand_between(void *found, void *real, const void *ours) {
  void *between = found;
  if (found) {
    memcpy(real, &found, sizeof found);
    memcpy(&between, ours, sizeof between);
  }
  return between;
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
  void *found = fault_is_due(FAULT_LIBRARY) ? NULL : __real_dlsym(library, name);
  if (strcmp(name, "EVP_CIPHER_CTX_new") == 0) {
    return stand_between(found, &real_new, &(void *(*)(void)){ new_context });
  }
  if (strcmp(name, "EVP_CipherInit_ex") == 0) {
    return stand_between(found, &real_init, &(__typeof__(real_init)){ init });
  }
  if (strcmp(name, "EVP_CipherFinal_ex") == 0) {
    return stand_between(found, &real_final, &(__typeof__(real_final)){ final });
  }
  return found;
}
