/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_socket.h. */
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
#include "common/launcher.h"
#include "common/log.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/observe/limits.h"
#include "net_plugin/observe/stats_json.h"
#include "net_plugin/observe/stats_path.h"

/* One client at a time: its document is written connection by connection, in bounded steps, one for
 * each time that its socket is writable, and then sent. */
struct document {
  FILE *to;    /* NULL: it is complete */
  char *bytes; /* once it is */
  size_t size, sent;
  unsigned engine; /* index of the one being read */
  uint64_t after;  /* its connections up to this number are done */
  bool is_engine_done, has_some;
  bool
      is_truncated; /* STATS_TEXT_MAX_BYTES are there: the rest is left out, and the text says so */
};

/* Guarded by the lock of `engine`; `engine` itself is written when engines are made and ended,
 * serialised by engine.c. */
static struct {
  struct engine *engine; /* serves the socket; NULL: no socket */
  struct engine_source source;
  struct engine_source client; /* fd -1: nobody is served */
  struct engine_timer timer;   /* the client's pause or end; without one: to resume accepting */
  uint64_t deadline_ns;        /* the client's */
  struct document document;    /* the client's */
  uint64_t started_ns;
  char id[STATS_ID_MAX]; /* of started_ns */
  char path[STATS_PATH_MAX + 32];
  _Atomic pid_t owner; /* the process that made the file at path; 0: none */
} server = { .client.fd = -1 };

/* ---- the document ---- */

/* False: memory is out. */
static bool document_begin(void) {
  struct document *document = &server.document;
  char host[65] = "";
  gethostname(host, sizeof host - 1);
  const struct stats_process process = {
    .pid = (int)getpid(),
    .id = server.id,
    .host = host,
    .rank = launcher_rank(),
    .uptime_ns = clock_now_ns() - server.started_ns,
  };
  *document = (struct document){ 0 };
  document->to = open_memstream(&document->bytes, &document->size);
  if (document->to) {
    stats_json_begin(document->to, &process);
  }
  return document->to;
}

static bool has_room(struct document *document) {
  document->is_truncated |= ftello(document->to) > STATS_TEXT_MAX_BYTES;
  return !document->is_truncated;
}

static void take_connection(struct document *document, struct engine *engine,
                            struct connection *connection, uint64_t now_ns) {
  struct connection_snapshot seen;
  const struct stats_engine its = { engine_shard(engine), engine_is_polled(engine),
                                    engine_policy_shared(engine)->compression };
  connection_snapshot(connection, now_ns, &seen);
  if (!has_room(document)) {
    return;
  }
  stats_json_connection(document->to, &seen, &its, now_ns, !document->has_some);
  document->has_some = true;
  bool has_flow = false;
  for (unsigned i = 0; i < seen.lanes; i++) {
    struct lane_snapshot flow;
    connection_snapshot_lane(connection, i, &flow);   /* also updates the totals of the NIC */
    if (flow.link.epoch != 0 && has_room(document)) { /* else it was never opened */
      stats_json_flow(document->to, &flow, !has_flow);
      has_flow = true;
    }
  }
  stats_json_connection_end(document->to);
}

static void take_some(struct engine *engine, void *argument) {
  struct document *document = argument;
  uint64_t now_ns = clock_now_ns();
  unsigned flows = 0;
  struct connection *connection = NULL;
  while (flows < STATS_FLOWS_PER_STEP && (connection = connection_next(engine, connection))) {
    if (connection_number(connection) > document->after) {
      take_connection(document, engine, connection, now_ns);
      document->after = connection_number(connection);
      flows += connection_lane_count(connection);
    }
  }
  document->is_engine_done = !connection;
}

/* False: memory was out. */
static bool end_text(struct document *document) {
  bool is_good = !ferror(document->to);
  is_good = fclose(document->to) == 0 && is_good;
  document->to = NULL;
  return is_good;
}

/* ---- the client ---- */

static void client_close(void) {
  int fd = server.client.fd;
  engine_timer_stop(&server.timer);
  engine_unwatch(server.engine, &server.client);
  descriptor_close(fd);
  if (server.document.to) {
    end_text(&server.document);
  }
  free(server.document.bytes);
  engine_rewatch(server.engine, &server.source, EPOLLIN);
}

/* Both: false: close the client. */
static bool client_collect(struct document *document) {
  int error = engine_try_visit(server.engine, document->engine, take_some, document);
  if (error == -ENOENT) {
    stats_json_end(document->to, document->is_truncated);
    return end_text(document);
  }
  if (error) { /* it is busy */
    engine_rewatch(server.engine, &server.client, 0);
    engine_timer_set(server.engine, &server.timer, clock_now_ns() + STATS_RETRY_NS);
  } else if (document->is_engine_done) {
    document->engine++;
    document->after = 0;
  }
  return true;
}

static bool client_send(struct document *document) {
  ssize_t n = send(server.client.fd, document->bytes + document->sent,
                   document->size - document->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) {
    return errno == EAGAIN || errno == EINTR;
  }
  document->sent += (size_t)n;
  return document->sent < document->size;
}

static void client_ready(struct engine_source *source, uint32_t events) {
  struct document *document = &server.document;
  (void)source;
  if ((events & (EPOLLHUP | EPOLLERR)) ||
      !(document->to ? client_collect(document) : client_send(document))) {
    client_close();
  }
}

static void client_new(int fd, uint64_t now_ns) {
  server.client = (struct engine_source){ .ready = client_ready, .fd = fd };
  server.deadline_ns = now_ns + STATS_CLIENT_NS;
  engine_rewatch(server.engine, &server.source, 0);
  engine_timer_set(server.engine, &server.timer, server.deadline_ns);
  if (!document_begin() || engine_watch(server.engine, &server.client, fd, EPOLLOUT) != 0) {
    client_close();
  }
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
}

static void timer_expired(struct engine_timer *timer, uint64_t now_ns) {
  if (server.client.fd < 0) {
    engine_rewatch(server.engine, &server.source, EPOLLIN);
  } else if (now_ns >= server.deadline_ns) {
    client_close();
  } else {
    engine_timer_set(server.engine, timer, server.deadline_ns);
    engine_rewatch(server.engine, &server.client, EPOLLOUT);
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
  server.timer.expired = timer_expired;
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
  if (server.client.fd >= 0) {
    client_close();
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
