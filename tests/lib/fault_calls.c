/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped system calls. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "tests/lib/fault_state.h"

int __real_socket(int family, int type, int protocol);
int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int __real_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __real_listen(int fd, int backlog);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __real_connect(int fd, const struct sockaddr *address, socklen_t bytes);
ssize_t __real_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recv(int fd, void *data, size_t bytes, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);
int __real_epoll_wait(int epoll_fd, struct epoll_event *events, int count, int timeout_ms);
int __real_eventfd(unsigned count, int flags);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
ssize_t __real_getrandom(void *data, size_t bytes, unsigned flags);
int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *data, size_t bytes);
int __real_sodium_init(void);

int __wrap_socket(int family, int type, int protocol);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epoll_fd, struct epoll_event *events, int count, int timeout_ms);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
int __wrap_sodium_init(void);

const char *fault_call_name(enum fault_call call) {
  static const char *const names[FAULT_CALL_COUNT] = {
    "allocation", "socket",         "setsockopt", "bind",          "listen",    "accept4",
    "connect",    "send",           "recv",       "epoll_create1", "epoll_ctl", "epoll_wait",
    "eventfd",    "pthread_create", "getrandom",  "open",          "read",      "sodium_init",
  };
  return names[call];
}

int __wrap_socket(int family, int type, int protocol) {
  return fault_is_due(FAULT_SOCKET) ? -1 : __real_socket(family, type, protocol);
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t bytes) {
  return fault_is_due(FAULT_SETSOCKOPT) ? -1 : __real_setsockopt(fd, level, option, value, bytes);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t bytes) {
  return fault_is_due(FAULT_BIND) ? -1 : __real_bind(fd, address, bytes);
}

int __wrap_listen(int fd, int backlog) {
  return fault_is_due(FAULT_LISTEN) ? -1 : __real_listen(fd, backlog);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags) {
  return fault_is_due(FAULT_ACCEPT) ? -1 : __real_accept4(fd, address, bytes, flags);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t bytes) {
  return fault_is_due(FAULT_CONNECT) ? -1 : __real_connect(fd, address, bytes);
}

ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags) {
  size_t part = fault_shortened(bytes);
  if (part < FAULT_SEND_WHOLE) {
    part = bytes < FAULT_SEND_WHOLE ? bytes : FAULT_SEND_WHOLE;
  }
  return fault_is_due(FAULT_SEND) ? -1 : __real_send(fd, data, part, flags);
}

ssize_t __wrap_recv(int fd, void *data, size_t bytes, int flags) {
  return fault_is_due(FAULT_RECEIVE) ? -1 : __real_recv(fd, data, fault_shortened(bytes), flags);
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

int __wrap_epoll_create1(int flags) {
  return fault_is_due(FAULT_EPOLL_CREATE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event) {
  bool can_fail = operation == EPOLL_CTL_ADD;
  return can_fail && fault_is_due(FAULT_EPOLL_ADD)
             ? -1
             : __real_epoll_ctl(epoll_fd, operation, fd, event);
}

int __wrap_epoll_wait(int epoll_fd, struct epoll_event *events, int count, int timeout_ms) {
  return fault_is_due(FAULT_EPOLL_WAIT) ? -1
                                        : __real_epoll_wait(epoll_fd, events, count, timeout_ms);
}

int __wrap_eventfd(unsigned count, int flags) {
  return fault_is_due(FAULT_EVENTFD) ? -1 : __real_eventfd(count, flags);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  return fault_is_due(FAULT_THREAD) ? errno
                                    : __real_pthread_create(thread, attributes, run, argument);
}

ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags) {
  return fault_is_due(FAULT_RANDOM) ? -1 : __real_getrandom(data, bytes, flags);
}

int __wrap_open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fault_is_due(FAULT_OPEN) ? -1 : __real_open(path, flags, mode);
}

ssize_t __wrap_read(int fd, void *data, size_t bytes) {
  return fault_is_due(FAULT_READ) ? -1 : __real_read(fd, data, bytes);
}

int __wrap_sodium_init(void) {
  return fault_is_due(FAULT_CIPHERS) ? -1 : __real_sodium_init();
}
