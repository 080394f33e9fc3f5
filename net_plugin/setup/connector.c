/* SPDX-License-Identifier: Apache-2.0 */
/* See setup.h. */
#include "net_plugin/setup/setup.h"

#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/param.h"
#include "common/random.h"
#include "common/version.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/dialer.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/listener.h"
#include "net_plugin/setup/no_path.h"
#include "net_plugin/setup/protection.h"

/* "eth0 to 10.0.0.1:4242" */
#define WAY_TEXT (IF_NAMESIZE + TCP_ADDRESS_TEXT + 4)

/* A connection that is being made, until NCCL has it. */
struct pending_connect {
  struct dialer dialer;
  uint64_t token; /* in the handle */
  /* guarded by pending_lock */
  struct list_node node;
  uint64_t asked_ns; /* the last connect call */
  bool is_asked;     /* it goes on */

  /* the rest is guarded by the engine lock */
  struct engine_timer retry;
  struct engine_timer slow;
  struct engine_timer abandoned;
  bool has_logged_refusal;
  uint64_t deadline_ns, backoff_ns;
  int last_error;
  bool has_failed;    /* with it: NCCL is to be told */
  unsigned no_ways;   /* the last dials in a row for which the kernel knew no way */
  uint64_t no_way_ns; /* since when */
  bool is_gone;       /* the peer's process is */
  struct path told;   /* that of the dial that ended with last_error */
  bool is_cut;        /* the deadline leaves the last dial less time than one gets */
};

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all_pending = { { &all_pending.head, &all_pending.head } };

static void dial_next(struct pending_connect *pending);

static void fail(struct pending_connect *pending, int error) {
  pending->has_failed = true;
  pending->last_error = error;
}

static const char *peer_text(const struct pending_connect *pending, char text[TCP_ADDRESS_TEXT]) {
  return tcp_address_text(&pending->dialer.route.remote.addresses[0], text);
}

/* A dial's way, what it ended with, and what to do. */
static const char *describe(const struct pending_connect *pending, char way[WAY_TEXT],
                            char why[NO_PATH_TEXT]) {
  char text[TCP_ADDRESS_TEXT];
  const struct peering_route *route = &pending->dialer.route;
  const struct nic *nic = &route->nics[pending->told.nic];
  const struct sockaddr_storage *address = &route->remote.addresses[pending->told.address];
  snprintf(way, WAY_TEXT, "%.15s to %s", nic->name, tcp_address_text(address, text));
  bool is_advertised = route->remote.advertised >> pending->told.address & 1;
  return no_path_text(nic, address, is_advertised, pending->last_error, why);
}

static void slow_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct pending_connect *pending = LIST_ENTRY(timer, struct pending_connect, slow);
  char way[WAY_TEXT], why[NO_PATH_TEXT];
  (void)now_ns;
  if (!pending->has_failed && !pending->dialer.peering.connection) {
    describe(pending, way, why);
    LOG_INFO("still connecting from %s: %s. Trying for %g s (STRATUS_CONNECT_TIMEOUT)", way, why,
             (double)pending->dialer.settings.connect_timeout_ns / (double)NS_PER_S);
  }
}

/* Each path with each binding. */
static unsigned ways_of(const struct pending_connect *pending) {
  return PEERING_BINDINGS * pending->dialer.route.path_count;
}

/* All were tried, and the kernel knew none: that only the host itself can change. Where addresses
 * are the host's, a routing daemon brings its routes as links come up. */
static bool is_hopeless(const struct pending_connect *pending, uint64_t now_ns) {
  const struct peering_route *route = &pending->dialer.route;
  if (pending->no_ways < ways_of(pending) || now_ns < pending->no_way_ns + CONNECT_NO_WAY_NS ||
      param_is_set(PARAM_CONNECT_TIMEOUT)) {
    return false;
  }
  for (unsigned i = 0; i < route->nic_count; i++) {
    int flags = tcp_nic_flags(&route->nics[i]);
    if (route->nics[i].has_host_address || flags < 0 || !(flags & IFF_RUNNING)) {
      return false;
    }
  }
  return true;
}

static void give_up(struct pending_connect *pending, uint64_t patience_ns, const char *limit) {
  char way[WAY_TEXT], reason[NO_PATH_TEXT];
  describe(pending, way, reason);
  LOG_WARN("cannot connect from %s, for %g s (%s): %s", way, (double)patience_ns / (double)NS_PER_S,
           limit, reason);
  fail(pending, pending->last_error);
}

static uint64_t before_deadline(const struct pending_connect *pending, uint64_t due_ns) {
  return due_ns < pending->deadline_ns ? due_ns : pending->deadline_ns;
}

/* Its listener was there before NCCL had the handle: a host that refuses for long has lost it. */
static void note_refusal(struct pending_connect *pending, int dial_error) {
  pending->is_gone = peering_heard(&pending->dialer.peering, dial_error == -ECONNREFUSED) &&
                     !param_is_set(PARAM_CONNECT_TIMEOUT);
}

static void retry_later(struct pending_connect *pending, int error) {
  char text[TCP_ADDRESS_TEXT], why[OPEN_FILES_TEXT];
  uint64_t now_ns = clock_now_ns();
  /* One that was cut short has heard less than the one before. */
  if (!pending->is_cut || error != -ETIMEDOUT || !pending->last_error) {
    pending->last_error = error;
    pending->told = pending->dialer.dials[0].path;
  }
  if (is_hopeless(pending, now_ns)) {
    give_up(pending, CONNECT_NO_WAY_NS,
            "no packet was sent; longer if STRATUS_CONNECT_TIMEOUT is set");
    return;
  }
  if (pending->is_gone) {
    give_up(pending, REFUSAL_GONE_NS,
            "the peer's process is gone; longer if STRATUS_CONNECT_TIMEOUT is set");
    return;
  }
  if (open_files_are_short(error)) {
    LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS, "cannot connect from %s to %s yet: %s; trying again",
                   pending->dialer.route.nics[0].name, peer_text(pending, text),
                   open_files_why(error, why));
  }
  pending->dialer.dials[0].failures++;
  if (pending->no_ways % ways_of(pending)) {
    engine_timer_set(pending->dialer.peering.engine, &pending->retry,
                     now_ns); /* another may be known */
    return;
  }
  engine_timer_set(pending->dialer.peering.engine, &pending->retry,
                   before_deadline(pending, now_ns + pending->backoff_ns));
  pending->backoff_ns = pending->backoff_ns * 2 < CONNECT_LAST_BACKOFF_NS ? pending->backoff_ns * 2
                                                                          : CONNECT_LAST_BACKOFF_NS;
}

/* A refusal without a proof may be forged on the path: it costs this dial, and is logged once. If
 * it is true, it is the error at the deadline. */
static void refused_without_proof(struct pending_connect *pending, int error,
                                  const struct reply *reply) {
  char text[TCP_ADDRESS_TEXT];
  bool is_version = error == -EPROTONOSUPPORT || reply->status == REPLY_OTHER_VERSION;
  if (pending->has_logged_refusal) {
    LOG_TRACE("%s refuses again", peer_text(pending, text));
  } else if (is_version) {
    LOG_WARN(
        "%s runs stratus %s (wire version %u), this host %s (wire version %u). Install the same "
        "release on every host; trying again meanwhile",
        peer_text(pending, text), reply->prefix.version, reply->prefix.wire_version,
        STRATUS_VERSION, HANDSHAKE_WIRE_VERSION);
  } else {
    LOG_WARN("%s does not know this connection: its process may have given up, look at its log; "
             "trying again meanwhile",
             peer_text(pending, text));
  }
  pending->has_logged_refusal = true;
  retry_later(pending, is_version ? -EPROTONOSUPPORT : -ECONNREFUSED);
}

static void refused_for_good(struct pending_connect *pending, const struct reply *reply) {
  const struct conn_params *ours = &pending->dialer.hello.params;
  char text[TCP_ADDRESS_TEXT];
  int error;
  if (reply->status == REPLY_OTHER_SECRET) {
    char why[PROTECTION_TEXT_BYTES];
    LOG_WARN("%s", protection_secret_differs(ours, &reply->params, peer_text(pending, text), why));
    error = -EACCES;
  } else if (reply->status == REPLY_OTHER_DECISIONS) {
    decision_tell(ours, &reply->params, peer_text(pending, text));
    error = -EPROTO;
  } else {
    LOG_WARN("%s at %s refused the connection: %s", reply->params.host, peer_text(pending, text),
             reply_status_text(reply->status));
    error = reply->status == REPLY_OTHER_ENCRYPTION ? -EPROTO : -ECONNREFUSED;
  }
  fail(pending, error);
}

static void first_failed(struct dialer *dialer, int error, const struct reply *reply,
                         bool is_final) {
  struct pending_connect *pending = (struct pending_connect *)dialer;
  char text[TCP_ADDRESS_TEXT];
  pending->no_ways = 0;
  note_refusal(pending, error);
  if (is_final) {
    fail(pending, error);
  } else if (error == -EPROTONOSUPPORT || (error == -ENOLINK && !reply_has_mac(reply->status))) {
    refused_without_proof(pending, error, reply);
  } else if (error == -ENOLINK) {
    refused_for_good(pending, reply);
  } else {
    if (error == -EKEYREJECTED) {
      LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                     "what answers at %s cannot prove that it is this job's peer; trying again",
                     peer_text(pending, text));
    }
    retry_later(pending, error);
  }
}

/* What the routing tables, or a rule of this host, say before a packet is sent. */
static void note_no_way(struct pending_connect *pending, int error) {
  bool is_no_way = error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EACCES ||
                   error == -EPERM || error == -EINVAL;
  pending->no_way_ns = pending->no_ways ? pending->no_way_ns : clock_now_ns();
  pending->no_ways = is_no_way ? pending->no_ways + 1 : 0;
}

static void dial_next(struct pending_connect *pending) {
  unsigned path_count = pending->dialer.route.path_count;
  bool is_first_round = path_count > 1 && pending->dialer.dials[0].failures < path_count;
  uint64_t due_ns =
      clock_now_ns() + (is_first_round ? CONNECT_FIRST_ROUND_NS : CONNECT_DIAL_TIMEOUT_NS);
  uint64_t deadline_ns = before_deadline(pending, due_ns);
  pending->is_cut = deadline_ns < due_ns;
  int error = dialer_dial_first(&pending->dialer, deadline_ns);
  if (error) {
    note_no_way(pending, error);
    note_refusal(pending, error);
    retry_later(pending, error);
  }
}

static void retry_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct pending_connect *pending = LIST_ENTRY(timer, struct pending_connect, retry);
  if (now_ns >= pending->deadline_ns) {
    give_up(pending, pending->dialer.settings.connect_timeout_ns, "STRATUS_CONNECT_TIMEOUT");
  } else {
    dial_next(pending);
  }
}

static int prepare(struct pending_connect *pending, int dscp) {
  struct peering_route *route = &pending->dialer.route;
  peering_route_find_paths(route);
  pending->backoff_ns = CONNECT_FIRST_BACKOFF_NS;
  pending->retry.expired = retry_expired;
  pending->deadline_ns = clock_now_ns() + pending->dialer.settings.connect_timeout_ns;
  struct hello *hello = &pending->dialer.hello;
  memcpy(hello->listener, route->remote.listener, TOKEN_BYTES);
  hello->dscp = (int8_t)dscp;
  hello->is_first = 1;
  bool is_encrypted = pending->dialer.settings.wants_encryption;
  endpoint_wait(route->nics, route->nic_count, is_encrypted);
  hello->params = pending->dialer.settings.params;
  hello->params.remote_keys =
      (uint8_t)endpoint_remote_keys(route->nics, route->nic_count, is_encrypted);
  int error = random_secret(hello->connection, TOKEN_BYTES);
  error = error ? error : random_secret(&pending->token, sizeof pending->token);
  if (error) {
    LOG_WARN("cannot draw a random identity: %s", strerror(-error));
    return error;
  }
  pending->token |= 1; /* 0 is none */
  hello->params.has_secret = protection_has_secret();
  protection_keys(route->remote.secret, hello->connection, &pending->dialer.peering.keys);
  hash_wipe(route->remote.secret, AUTH_SECRET_BYTES);
  return engine_get(&route->nics[0], ENGINE_DIALS, &pending->dialer.peering.engine);
}

/* No connect call for so long after the deadline: NCCL has given up. It calls in a loop, so this
 * margin is for debuggers. A later call starts a new one. */
static uint64_t patience_ns(const struct pending_connect *pending) {
  return 2 * pending->dialer.settings.connect_timeout_ns;
}

/* NCCL has the connection, or the error, or does not call any more. */
static void leave(struct pending_connect *pending) {
  engine_timer_stop(&pending->retry);
  engine_timer_stop(&pending->slow);
  engine_timer_stop(&pending->abandoned);
  if (!pending->dialer.peering.connection) {
    dialer_free(&pending->dialer);
  }
}

/* An aborted communicator does not call again, and before interface v11 has no call to report it.
 */
static void abandoned_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct pending_connect *pending = LIST_ENTRY(timer, struct pending_connect, abandoned);
  pthread_mutex_lock(&pending_lock);
  uint64_t since_ns =
      pending->asked_ns > pending->deadline_ns ? pending->asked_ns : pending->deadline_ns;
  bool is_abandoned = !pending->is_asked && now_ns >= since_ns + patience_ns(pending);
  if (is_abandoned) {
    list_remove(&pending->node);
  }
  pthread_mutex_unlock(&pending_lock);
  if (!is_abandoned) {
    engine_timer_set(pending->dialer.peering.engine, timer, since_ns + patience_ns(pending));
    return;
  }
  LOG_TRACE("a pending connect is dropped: no connect call after its deadline of %.1f s",
            (double)pending->dialer.settings.connect_timeout_ns / (double)NS_PER_S);
  struct connection *connection = pending->dialer.peering.connection;
  leave(pending);
  if (connection) {
    connection_destroy(connection);
  }
}

/* Handles of NCCL's own transports begin with a socket address (net_socket.cc, net_ib/connect.cc).
 */
static const char *foreign_address(const uint8_t handle[HANDLE_BYTES],
                                   char text[TCP_ADDRESS_TEXT]) {
  struct sockaddr_storage address;
  memcpy(&address, handle, sizeof address < HANDLE_BYTES ? sizeof address : HANDLE_BYTES);
  bool is_one = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  return is_one ? tcp_address_text(&address, text) : "of unknown address";
}

/* Whether only LD_LIBRARY_PATH leads NCCL to this plugin: launchers that do not pass it on leave
 * their hosts without. */
static bool is_by_library_path(void) {
  static const char anchor; /* in this library */
  const char *plugin = getenv("NCCL_NET_PLUGIN"), *directory = getenv("LD_LIBRARY_PATH");
  Dl_info library;
  const char *slash = dladdr(&anchor, &library) ? strrchr(library.dli_fname, '/') : NULL;
  while (slash && directory && *directory && !(plugin && strchr(plugin, '/'))) {
    size_t length = strcspn(directory, ":");
    if (length == (size_t)(slash - library.dli_fname) &&
        strncmp(directory, library.dli_fname, length) == 0) {
      return true;
    }
    directory += length + (directory[length] == ':');
  }
  return false;
}

static int read_handle(const uint8_t bytes[HANDLE_BYTES], struct handle *handle) {
  int error = handle_decode(bytes, handle);
  if (error == -EPROTONOSUPPORT) {
    LOG_WARN("the peer runs another stratus release (wire version %u), this host %s (wire version "
             "%u). Install the same release on every host",
             handle->wire_version, STRATUS_VERSION, HANDSHAKE_WIRE_VERSION);
  } else if (error) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN("the peer's NCCL (host %s) does not use stratus: probably its NCCL could not load the "
             "plugin and fell back silently%s. Set the same NCCL_NET_PLUGIN on every host and look "
             "for \"stratus\" "
             "in each host's NCCL_DEBUG=INFO log. Or its NCCL sets up other channels than this one "
             "(\"Message truncated\" there): use the same NCCL_* variables and the same profile on "
             "every host; stratus show tells a host's",
             foreign_address(bytes, text),
             is_by_library_path()
                 ? ": NCCL finds it by LD_LIBRARY_PATH here, which a launcher may not "
                   "have passed on; pass it on, or set NCCL_NET_PLUGIN to the path of "
                   "the file"
                 : "");
  }
  return error;
}

static int start(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                 uint8_t handle[HANDLE_BYTES]) {
  struct settings settings;
  settings_get(count, &settings);
  settings_of_group(count, group_peers, &settings);
  struct pending_connect *pending =
      (struct pending_connect *)dialer_new(sizeof *pending, settings.params.lanes);
  handle_set_pending(handle, 0);
  if (!pending) {
    return -ENOMEM;
  }
  pending->dialer.settings = settings;
  pending->dialer.first_failed = first_failed;
  pending->dialer.route.nic_count = count;
  memcpy(pending->dialer.route.nics, nics, count * sizeof *nics);
  int error = read_handle(handle, &pending->dialer.route.remote);
  error = error ? error : protection_check();
  error = error ? error : prepare(pending, dscp);
  if (error) {
    dialer_free(&pending->dialer);
    return error;
  }
  handle_set_pending(handle, pending->token);
  pthread_mutex_lock(&pending_lock);
  pending->asked_ns = clock_now_ns();
  list_push_back(&all_pending, &pending->node);
  pthread_mutex_unlock(&pending_lock);
  engine_lock(pending->dialer.peering.engine);
  pending->slow.expired = slow_expired;
  engine_timer_set(pending->dialer.peering.engine, &pending->slow,
                   clock_now_ns() + CONNECT_SLOW_NS);
  pending->abandoned.expired = abandoned_expired;
  engine_timer_set(pending->dialer.peering.engine, &pending->abandoned,
                   pending->deadline_ns + patience_ns(pending));
  dial_next(pending);
  engine_unlock(pending->dialer.peering.engine);
  return 0;
}

static struct pending_connect *find(uint64_t token, const uint8_t listener[TOKEN_BYTES]) {
  struct pending_connect *found = NULL;
  pthread_mutex_lock(&pending_lock);
  LIST_FOR_EACH(node, &all_pending) {
    struct pending_connect *known = LIST_ENTRY(node, struct pending_connect, node);
    if (known->token == token &&
        hash_is_equal(known->dialer.route.remote.listener, listener, TOKEN_BYTES)) {
      found = known;
      found->asked_ns = clock_now_ns();
      found->is_asked = true; /* not freed meanwhile, however long this thread gets no processor */
    }
  }
  pthread_mutex_unlock(&pending_lock);
  return found;
}

int connector_connect(const struct nic *nics, unsigned count, int dscp, unsigned group_peers,
                      uint8_t handle[HANDLE_BYTES], struct connection **connection) {
  struct pending_connect *pending = find(handle_pending(handle), handle + HANDLE_LISTENER_AT);
  *connection = NULL;
  if (!pending) {
    return start(nics, count, dscp, group_peers, handle);
  }
  struct engine *engine = pending->dialer.peering.engine;
  engine_progress(engine);
  engine_lock(engine);
  int error = pending->has_failed ? pending->last_error : 0;
  *connection = pending->dialer.peering.connection;
  bool is_over = error || *connection;
  pthread_mutex_lock(&pending_lock);
  pending->is_asked = false;
  if (is_over) {
    list_remove(&pending->node);
  }
  pthread_mutex_unlock(&pending_lock);
  if (is_over) {
    leave(pending);
    handle_set_pending(handle, 0);
  }
  engine_unlock(engine);
  return error;
}

/* ---- the end of everything ---- */

static void drop_pending(struct engine *engine) {
  engine_assert_locked(engine);
  pthread_mutex_lock(&pending_lock);
  LIST_FOR_EACH_SAFE(node, &all_pending) {
    struct pending_connect *pending = LIST_ENTRY(node, struct pending_connect, node);
    if (pending->dialer.peering.engine == engine) {
      list_remove(node);
      leave(pending);
    }
  }
  pthread_mutex_unlock(&pending_lock);
}

static void leave_engine(struct engine *engine, void *unused) {
  (void)unused;
  drop_pending(engine);
  listener_drop_all(engine);
  connection_detach_all(engine);
}

static void stop_engine(struct engine *engine) {
  struct connection *connection;
  while ((connection = connection_next(engine, NULL))) {
    connection_destroy(connection);
  }
  listener_close_ports(engine);
}

void setup_stop(void) {
  engine_visit_all(leave_engine, NULL);
  engine_stop_all(SETUP_CLOSE_NS, stop_engine);
  endpoint_stop_all();
}
