/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_socket.h. Each readiness event of a client does one bounded step: some connections are
 * written down, then what the socket takes is sent. */
#include "net_plugin/observe/stats_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/observe/limits.h"
#include "net_plugin/observe/stats_collect.h"
#include "net_plugin/observe/stats_path.h"

struct client {
  struct engine_source source;
  struct engine_timer timer;
  uint64_t deadline_ns;
  struct stats_collect collect;
  bool is_complete; /* the text is, and is being sent */
  size_t sent;
};

/* Guarded by the lock of `engine`; `engine` itself is written when engines are made and ended,
 * serialised by engine.c. */
static struct {
  struct engine *engine; /* serves the socket; NULL: no socket */
  struct engine_source source;
  struct engine_timer timer; /* to resume accepting */
  uint64_t started_ns;
  char id[STATS_ID_MAX]; /* of started_ns */
  struct client *clients[STATS_CLIENTS_MAX];
  unsigned client_count;
  char path[STATS_PATH_MAX + 32];
  _Atomic pid_t owner; /* the process that made the file at path; 0: none */
} server;

/* ---- clients ---- */

static void client_free(struct client *client) {
  engine_timer_stop(&client->timer);
  int fd = client->source.fd;
  engine_unwatch(server.engine, &client->source);
  descriptor_close(fd);
  stats_collect_free(&client->collect);
  for (unsigned i = 0; i < STATS_CLIENTS_MAX; i++) {
    if (server.clients[i] == client) {
      server.clients[i] = NULL;
    }
  }
  server.client_count--;
  free(client);
  engine_rewatch(server.engine, &server.source, EPOLLIN);
}

/* Continues after STATS_RETRY_NS. */
static void client_pause(struct client *client, uint64_t now_ns) {
  engine_rewatch(server.engine, &client->source, 0);
  engine_timer_set(server.engine, &client->timer, now_ns + STATS_RETRY_NS);
}

static void client_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct client *client = LIST_ENTRY(timer, struct client, timer);
  if (now_ns >= client->deadline_ns) {
    client_free(client);
    return;
  }
  engine_timer_set(server.engine, &client->timer, client->deadline_ns);
  engine_rewatch(server.engine, &client->source, EPOLLOUT);
}

/* Both: false: close the client. */
static bool client_collect(struct client *client) {
  int error = stats_collect_step(&client->collect);
  if (error == -EAGAIN) {
    client_pause(client, clock_now_ns());
  }
  client->is_complete = !error;
  return error != -ENOMEM;
}

static bool client_send(struct client *client) {
  const struct stats_collect *text = &client->collect;
  ssize_t n = send(client->source.fd, text->bytes + client->sent, text->size - client->sent,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  client->sent += (size_t)n;
  return client->sent < text->size;
}

static void client_ready(struct engine_source *source, uint32_t events) {
  struct client *client = LIST_ENTRY(source, struct client, source);
  if ((events & (EPOLLHUP | EPOLLERR)) ||
      !(client->is_complete ? client_send(client) : client_collect(client))) {
    client_free(client);
  }
}

static void client_new(int fd, uint64_t now_ns) {
  struct client *client = calloc(1, sizeof *client);
  int error =
      client ? stats_collect_start(&client->collect, server.engine, server.id, server.started_ns)
             : -ENOMEM;
  error = error ? error : engine_watch(server.engine, &client->source, fd, EPOLLOUT);
  if (error) {
    descriptor_close(fd);
    if (client) {
      stats_collect_free(&client->collect);
    }
    free(client);
    return;
  }
  client->source.ready = client_ready;
  client->timer.expired = client_expired;
  client->deadline_ns = now_ns + STATS_CLIENT_NS;
  engine_timer_set(server.engine, &client->timer, client->deadline_ns);
  for (unsigned i = 0; i < STATS_CLIENTS_MAX; i++) {
    if (!server.clients[i]) {
      server.clients[i] = client;
      break;
    }
  }
  server.client_count++;
}

/* ---- the socket ---- */

static void server_ready(struct engine_source *source, uint32_t events) {
  (void)events;
  uint64_t now_ns = clock_now_ns();
  int fd = DESCRIPTOR(accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd >= 0) {
    client_new(fd, now_ns);
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    engine_rewatch(server.engine, source, 0);
    engine_timer_set(server.engine, &server.timer, now_ns + STATS_ACCEPT_PAUSE_NS);
  }
  if (server.client_count == STATS_CLIENTS_MAX) {
    engine_rewatch(server.engine, source, 0);
  }
}

static void server_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)timer;
  (void)now_ns;
  if (server.client_count < STATS_CLIENTS_MAX) {
    engine_rewatch(server.engine, &server.source, EPOLLIN);
  }
}

/* The file, with the mode of the socket, shows when it listens: what does not is taken for dead. */
static int listen_at(int fd, const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int length = (int)strlen(path) - (int)strlen(".sock");
  if (strlen(path) >= sizeof address.sun_path) {
    return -ENAMETOOLONG;
  }
  snprintf(address.sun_path, sizeof address.sun_path, "%.*s.new", length, path);
  if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    return -errno;
  }
  if (listen(fd, STATS_BACKLOG) != 0 || rename(address.sun_path, path) != 0) {
    int error = -errno;
    unlink(address.sun_path);
    return error;
  }
  return 0;
}

/* Returns the listening socket, at server.path, or a negative errno. */
static int listen_in(const char *directory) {
  int length = snprintf(server.path, sizeof server.path, "%s/%d-%s.sock", directory, (int)getpid(),
                        server.id);
  if (length < 0 || (size_t)length >= sizeof server.path) {
    return -ENAMETOOLONG;
  }
  int error = stats_path_check(directory, true);
  if (error) {
    return error;
  }
  stats_path_sweep(directory);
  int fd = DESCRIPTOR(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) {
    return -errno;
  }
  error = listen_at(fd, server.path);
  if (error) {
    descriptor_close(fd);
    return error;
  }
  atomic_store(&server.owner, getpid());
  return fd;
}

/* Not in a forked child: the file belongs to the parent. */
static void remove_file(void) {
  if (atomic_load(&server.owner) == getpid()) {
    unlink(server.path);
  }
  atomic_store(&server.owner, 0);
}

/* For processes that exit without finalize, as with NCCL up to 2.27. */
__attribute__((destructor)) static void remove_file_at_exit(void) {
  remove_file();
}

int stats_socket_open(struct engine *engine, const char **where) {
  *where = server.path;
  if (server.engine) {
    return -EALREADY;
  }
  if (!server.started_ns) {
    server.started_ns = clock_now_ns();
    snprintf(server.id, sizeof server.id, "%" PRIx64, server.started_ns);
  }
  char directory[STATS_PATH_MAX];
  int fd = listen_in(stats_path_directory(directory));
  if (fd < 0) {
    return fd;
  }
  server.source.ready = server_ready;
  server.timer.expired = server_expired;
  int error = engine_watch(engine, &server.source, fd, EPOLLIN);
  if (error) {
    remove_file();
    descriptor_close(fd);
    return error;
  }
  server.engine = engine;
  return 0;
}

static void close_socket(struct engine *engine) {
  for (unsigned i = 0; i < STATS_CLIENTS_MAX; i++) {
    if (server.clients[i]) {
      client_free(server.clients[i]);
    }
  }
  engine_timer_stop(&server.timer);
  int fd = server.source.fd;
  engine_unwatch(engine, &server.source);
  remove_file();
  descriptor_close(fd);
  server.engine = NULL;
}

/* ---- engines ---- */

static double gigabytes(uint64_t bytes) {
  return (double)bytes * 1e-9;
}

static void summarise(const struct nic *nic) {
  const struct nic_totals *totals = nic_totals_of(nic);
  uint64_t counts[NIC_COUNTER_COUNT];
  for (int i = 0; i < NIC_COUNTER_COUNT; i++) {
    counts[i] = atomic_load_explicit(&totals->counts[i], memory_order_relaxed);
  }
  LOG_INFO("%s: sent %.3f GB, received %.3f GB, %llu connections so far; %llu flow failures, "
           "%llu reconnects of slow flows, %llu chunks failed over, %llu checksum errors",
           nic->name, gigabytes(counts[NIC_BYTES_SENT]), gigabytes(counts[NIC_BYTES_RECEIVED]),
           (unsigned long long)counts[NIC_CONNECTIONS], (unsigned long long)counts[NIC_LOSSES],
           (unsigned long long)counts[NIC_SLOW_RECONNECTS],
           (unsigned long long)counts[NIC_REQUEUED],
           (unsigned long long)counts[NIC_CHECKSUM_ERRORS]);
  if (counts[NIC_CODED_BEFORE] > 0) {
    LOG_INFO("%s: chunks of %.3f GB were compressed to %.3f GB", nic->name,
             gigabytes(counts[NIC_CODED_BEFORE]), gigabytes(counts[NIC_CODED_AFTER]));
  }
}

static void engine_started(struct engine *engine) {
  const char *where;
  int error = stats_socket_open(engine, &where);
  if (!error) {
    LOG_TRACE("statistics of this process for stratus stats: %s", where);
  } else if (error != -EALREADY) {
    LOG_INFO("no statistics of this process for stratus stats: %s: %s%s", where, strerror(-error),
             error == -EPERM ? " (the directory must belong to this user and have mode 0700)" : "");
  }
}

static void engine_stopping(struct engine *engine) {
  if (engine == server.engine) {
    close_socket(engine);
  }
  if (engine_shard(engine) == 0) { /* the last engine of the NIC */
    summarise(engine_nic(engine));
  }
}

void stats_socket_start(void) {
  static const struct engine_observer observer = { engine_started, engine_stopping };
  engine_observe(&observer);
}
