/* SPDX-License-Identifier: Apache-2.0 */
/* See attempt.h. */
#include "net_plugin/setup/attempt.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/open_files.h"
#include "common/version.h"
#include "net_plugin/lane/tcp/tcp_socket.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/setup/dial.h"
#include "net_plugin/setup/rdma_choice.h"
#include "net_plugin/setup/secret.h"
#include "net_plugin/setup/settings.h"

#define FIRST_BACKOFF_NS (20 * NS_PER_MS)
#define LAST_BACKOFF_NS (1 * NS_PER_S)
#define DIAL_TIMEOUT_NS (5 * NS_PER_S)
/* While there are paths that were not tried yet; long enough for one lost SYN. */
#define FIRST_ROUND_NS (3 * NS_PER_S / 2)
#define WARN_INTERVAL_NS (30 * NS_PER_S)

enum attempt_state { ATTEMPT_DIALLING, ATTEMPT_WAITING, ATTEMPT_MADE, ATTEMPT_FAILED };

struct attempt {
  uint64_t token;
  struct engine *engine;
  /* guarded by attempts_lock */
  struct list_node node;
  uint64_t asked_ns; /* when NCCL asked for it last */

  /* the rest is guarded by the engine lock */
  enum attempt_state state;
  struct peering_route route;
  struct settings settings;
  struct hello hello;
  unsigned remote_keys; /* those that the first hello told */
  struct auth_keys keys;
  struct dial *dial;
  struct engine_timer retry;
  struct engine_timer forgotten;
  bool is_refusal_told;
  uint64_t deadline_ns, backoff_ns;
  int last_error;
  unsigned failures; /* dials without success; each takes another path */
  struct connection *connection;
};

static pthread_mutex_t attempts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list attempts = { { &attempts.head, &attempts.head } };
static atomic_flag is_cipher_told = ATOMIC_FLAG_INIT;

static void dial_next(struct attempt *attempt);

static void fail(struct attempt *attempt, int error) {
  attempt->state = ATTEMPT_FAILED;
  attempt->last_error = error;
}

static const char *peer_text(const struct attempt *attempt, char text[TCP_ADDRESS_TEXT]) {
  return tcp_address_text(&attempt->route.remote.addresses[0], text);
}

/* What the last dial ended with, and what to do. Nobody blames a firewall for what is known. */
static void warn_in_vain(const struct attempt *attempt, int error) {
  static const char check[] =
      ". Check that the peer's process lives and that no firewall blocks TCP "
      "between the hosts";
  char text[TCP_ADDRESS_TEXT], files[OPEN_FILES_TEXT];
  const char *why = open_files_why(error, files),
             *advice = open_files_are_short(error) ? "" : check;
  if (error == -EPROTONOSUPPORT) {
    why = "what answers there runs another release of stratus";
    advice = ". Install the same on every host";
  }
  LOG_WARN("cannot connect from %s to %s, for %llu s (STRATUS_CONNECT_TIMEOUT): %s%s",
           attempt->route.nics[0].name, peer_text(attempt, text),
           (unsigned long long)(attempt->settings.connect_timeout_ns / NS_PER_S), why, advice);
}

static void retry_later(struct attempt *attempt, int error) {
  char text[TCP_ADDRESS_TEXT], why[OPEN_FILES_TEXT];
  uint64_t now_ns = clock_now_ns();
  if (now_ns >= attempt->deadline_ns) {
    warn_in_vain(attempt, error);
    fail(attempt, error);
    return;
  }
  if (open_files_are_short(error)) {
    LOG_WARN_EVERY(WARN_INTERVAL_NS, "cannot connect from %s to %s yet: %s; trying again",
                   attempt->route.nics[0].name, peer_text(attempt, text),
                   open_files_why(error, why));
  }
  attempt->state = ATTEMPT_WAITING;
  attempt->last_error = error;
  attempt->failures++;
  engine_timer_set(attempt->engine, &attempt->retry, now_ns + attempt->backoff_ns);
  attempt->backoff_ns =
      attempt->backoff_ns * 2 < LAST_BACKOFF_NS ? attempt->backoff_ns * 2 : LAST_BACKOFF_NS;
}

static int make_connection(struct attempt *attempt, const struct reply *reply) {
  attempt->route.process = reply->process;
  peering_learn_addresses(&attempt->route, reply,
                          paths_choose(&attempt->route.paths, 0, attempt->failures));
  /* Both links must be made with the same. After a queue pair that could not be connected the hello
   * asks for none, but the peer may have made its link at the first hello. */
  attempt->hello.remote_keys = reply->remote_keys < attempt->remote_keys
                                   ? reply->remote_keys
                                   : (uint8_t)attempt->remote_keys;
  attempt->hello.lanes = reply->lanes < attempt->hello.lanes ? reply->lanes : attempt->hello.lanes;
  struct connection_config config = {
    .link = { .role = LINK_SENDER,
              .lanes = attempt->hello.lanes,
              .first_lanes = attempt->settings.first_lanes,
              .chunk_bytes = attempt->settings.chunk_bytes,
              .eager_bytes = reply->eager_bytes < attempt->hello.eager_bytes
                                 ? reply->eager_bytes
                                 : attempt->hello.eager_bytes,
              .eager_slots = reply->eager_slots < attempt->hello.eager_slots
                                 ? reply->eager_slots
                                 : attempt->hello.eager_slots,
              .wants_checksums = reply->has_checksums,
              .remote_keys = attempt->hello.remote_keys,
              .timeout_ns = attempt->settings.link_timeout_ns,
              .stopped_timeout_ns = attempt->settings.stopped_timeout_ns,
              .paths = attempt->route.paths.home_count,
              .redials_slow_lanes = attempt->settings.redials_slow_lanes,
              .policy = attempt->settings.policy,
              .policy_shared = engine_policy_shared(attempt->engine),
              .learns_lanes = attempt->settings.learns_lanes,
              .narrow_chunk_bytes = attempt->settings.narrow_chunk_bytes,
              .seed = clock_now_ns() },
  };
  peering_name(config.peer, reply->host, &attempt->route.remote.addresses[0], reply->nic);
  memcpy(config.nic, attempt->route.nics[0].name, sizeof attempt->route.nics[0].name);
  return peering_new(attempt->engine, &config, &attempt->hello, &attempt->keys, &attempt->route,
                     &attempt->connection);
}

/* Said without a proof, so maybe by somebody on the way: it costs this dial, and is told once. If
 * it is true, it is what the end says, at the deadline. */
static void refused_without_proof(struct attempt *attempt, int error, const struct reply *reply) {
  char text[TCP_ADDRESS_TEXT];
  bool is_version = error == -EPROTONOSUPPORT || reply->status == REPLY_OTHER_VERSION;
  if (attempt->is_refusal_told) {
    LOG_TRACE("%s refuses again", peer_text(attempt, text));
  } else if (is_version) {
    LOG_WARN(
        "%s runs stratus %s (wire version %u), this host %s (wire version %u). Install the same "
        "release on every host; trying again meanwhile",
        peer_text(attempt, text), reply->version, reply->wire_version, STRATUS_VERSION,
        HANDSHAKE_WIRE_VERSION);
  } else {
    LOG_WARN("%s does not know this connection: its process may have given up, look at its log; "
             "trying again meanwhile",
             peer_text(attempt, text));
  }
  attempt->is_refusal_told = true;
  retry_later(attempt, is_version ? -EPROTONOSUPPORT : -ECONNREFUSED);
}

static void refused_for_good(struct attempt *attempt, const struct reply *reply) {
  char text[TCP_ADDRESS_TEXT];
  int error;
  if (reply->status == REPLY_OTHER_SECRET) {
    char why[SECRET_TEXT_BYTES];
    LOG_WARN("%s",
             secret_differs_text(reply->host, peer_text(attempt, text), reply->has_secret, why));
    error = -EACCES;
  } else if (reply->status == REPLY_OTHER_DECISIONS) {
    decision_tell(reply->host, peer_text(attempt, text), &reply->decision);
    error = -EPROTO;
  } else {
    LOG_WARN("%s at %s refused the connection: %s", reply->host, peer_text(attempt, text),
             reply_status_text(reply->status));
    error = reply->status == REPLY_OTHER_ENCRYPTION ? -EPROTO : -ECONNREFUSED;
  }
  fail(attempt, error);
}

static void path_drop(const struct connection_path *path) {
  rdma_qp_free(path->qp);
  descriptor_close(path->fd);
}

static void dial_done(void *argument, int error, const struct connection_path *path,
                      const struct reply *reply) {
  struct attempt *attempt = argument;
  const struct lane_crypto *crypto = path->crypto;
  attempt->dial = NULL;
  if (error == -EPROTONOSUPPORT || (error == -ENOLINK && !reply_has_mac(reply->status))) {
    refused_without_proof(attempt, error, reply);
    return;
  }
  if (error == -ENOLINK) {
    refused_for_good(attempt, reply);
    return;
  }
  if (error == -EKEYREJECTED) {
    char text[TCP_ADDRESS_TEXT];
    LOG_WARN_EVERY(WARN_INTERVAL_NS,
                   "what answers at %s cannot prove that it is this job's peer; trying again",
                   peer_text(attempt, text));
  }
  if (error) {
    if (error == -ENODEV) {
      attempt->hello.remote_keys = 0; /* TCP works, as this dial shows */
    }
    retry_later(attempt, error);
    return;
  }
  error = make_connection(attempt, reply);
  if (error) {
    path_drop(path);
    LOG_WARN("cannot set up the connection to %s: %s", reply->host, strerror(-error));
    fail(attempt, error);
    return;
  }
  if (crypto && !atomic_flag_test_and_set(&is_cipher_told)) {
    LOG_INFO("data between hosts is encrypted with %s",
             crypto->cipher == LANE_AES256GCM ? "AES-256-GCM" : "ChaCha20-Poly1305");
  }
  attempt->state = ATTEMPT_MADE;
  connection_lane_opened(attempt->connection, 0, attempt->hello.epoch, path, 0);
}

static void dial_next(struct attempt *attempt) {
  struct nic nic;
  const struct sockaddr_storage *address;
  unsigned path_count = attempt->route.paths.count, round = attempt->failures / path_count;
  peering_choose(&attempt->route, 0, attempt->failures, (enum peering_binding)(round % 3), &nic,
                 &address);
  attempt->state = ATTEMPT_DIALLING;
  attempt->hello.epoch++;
  memcpy(attempt->hello.nic, nic.name, sizeof nic.name);
  uint64_t timeout_ns = path_count > 1 && round == 0 ? FIRST_ROUND_NS : DIAL_TIMEOUT_NS;
  int error;
  attempt->dial = dial_start(attempt->engine, &nic, address, &attempt->hello, &attempt->keys,
                             clock_now_ns() + timeout_ns, dial_done, attempt, &error);
  if (!attempt->dial) {
    retry_later(attempt, error);
  }
}

static void retry_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  dial_next(LIST_ENTRY(timer, struct attempt, retry));
}

static int prepare(struct attempt *attempt, const struct peering_route *route, int dscp) {
  attempt->route = *route;
  attempt->backoff_ns = FIRST_BACKOFF_NS;
  attempt->retry.expired = retry_expired;
  settings_get(route->nic_count, &attempt->settings);
  attempt->deadline_ns = clock_now_ns() + attempt->settings.connect_timeout_ns;
  struct hello *hello = &attempt->hello;
  hello->wire_version = HANDSHAKE_WIRE_VERSION;
  snprintf(hello->version, sizeof hello->version, "%s", STRATUS_VERSION);
  memcpy(hello->listener, route->remote.listener, TOKEN_BYTES);
  hello->lanes = (uint16_t)attempt->settings.lanes;
  hello->chunk_bytes = attempt->settings.chunk_bytes;
  hello->eager_bytes = attempt->settings.eager_bytes;
  hello->eager_slots = attempt->settings.eager_slots;
  hello->dscp = (int8_t)dscp;
  hello->is_first = 1;
  hello->ciphers = attempt->settings.ciphers;
  hello->wants_checksums = attempt->settings.wants_checksums;
  rdma_choice_wait(route->nics, route->nic_count);
  hello->remote_keys = (uint8_t)rdma_choice_remote_keys(route->nics, route->nic_count);
  attempt->remote_keys = hello->remote_keys;
  hello->process = settings_process();
  hello->decision = decision_get();
  snprintf(hello->host, sizeof hello->host, "%s", settings_host_name());
  if (getrandom(hello->connection, TOKEN_BYTES, 0) != TOKEN_BYTES ||
      getrandom(&attempt->token, sizeof attempt->token, 0) != sizeof attempt->token) {
    LOG_WARN("cannot draw a random identity: %s", strerror(errno));
    return -EIO;
  }
  attempt->token |= 1; /* 0 is none */
  uint8_t digest[AUTH_KEY_BYTES];
  const uint8_t *job = secret_get(digest);
  hello->has_secret = job != NULL;
  auth_keys_derive(route->remote.secret, job, hello->connection, &attempt->keys);
  hash_wipe(digest, sizeof digest);
  hash_wipe(attempt->route.remote.secret, AUTH_SECRET_BYTES);
  return engine_get(&route->nics[0], ENGINE_DIALS, &attempt->engine);
}

static void attempt_wipe(struct attempt *attempt) {
  if (attempt) {
    hash_wipe(&attempt->keys, sizeof attempt->keys);
  }
  free(attempt);
}

/* Nobody has asked for so long after the deadline: NCCL has given up. It asks in a loop, so this is
 * for debuggers. Who asks later starts anew. */
static uint64_t patience_ns(const struct attempt *attempt) {
  return 2 * attempt->settings.connect_timeout_ns;
}

static void attempt_free(struct attempt *attempt) {
  if (attempt->dial) {
    dial_cancel(attempt->dial);
  }
  engine_timer_stop(&attempt->retry);
  engine_timer_stop(&attempt->forgotten);
  attempt_wipe(attempt);
}

/* An aborted communicator asks no more, and has no call that says so before interface v11. */
static void forgotten_expired(struct engine_timer *timer, uint64_t now_ns) {
  struct attempt *attempt = LIST_ENTRY(timer, struct attempt, forgotten);
  pthread_mutex_lock(&attempts_lock);
  uint64_t since_ns =
      attempt->asked_ns > attempt->deadline_ns ? attempt->asked_ns : attempt->deadline_ns;
  bool is_forgotten = now_ns >= since_ns + patience_ns(attempt);
  if (is_forgotten) {
    list_remove(&attempt->node);
  }
  pthread_mutex_unlock(&attempts_lock);
  if (!is_forgotten) {
    engine_timer_set(attempt->engine, timer, since_ns + patience_ns(attempt));
    return;
  }
  LOG_TRACE("nobody asks for a connection any more that was begun %.1f s before its deadline",
            (double)attempt->settings.connect_timeout_ns / (double)NS_PER_S);
  if (attempt->connection) {
    connection_destroy(attempt->connection);
  }
  attempt_free(attempt);
}

int attempt_start(const struct peering_route *route, int dscp, uint64_t *token) {
  struct attempt *attempt = calloc(1, sizeof *attempt);
  int error = attempt ? prepare(attempt, route, dscp) : -ENOMEM;
  if (error) {
    attempt_wipe(attempt);
    return error;
  }
  *token = attempt->token;
  pthread_mutex_lock(&attempts_lock);
  attempt->asked_ns = clock_now_ns();
  list_push_back(&attempts, &attempt->node);
  pthread_mutex_unlock(&attempts_lock);
  engine_lock(attempt->engine);
  attempt->forgotten.expired = forgotten_expired;
  engine_timer_set(attempt->engine, &attempt->forgotten,
                   attempt->deadline_ns + patience_ns(attempt));
  dial_next(attempt);
  engine_unlock(attempt->engine);
  return 0;
}

int attempt_take(uint64_t token, const uint8_t listener[TOKEN_BYTES], bool *is_known,
                 struct connection **connection) {
  struct attempt *attempt = NULL;
  pthread_mutex_lock(&attempts_lock);
  LIST_FOR_EACH(node, &attempts) {
    struct attempt *known = LIST_ENTRY(node, struct attempt, node);
    if (known->token == token &&
        hash_is_equal(known->route.remote.listener, listener, TOKEN_BYTES)) {
      attempt = known;
      attempt->asked_ns = clock_now_ns(); /* so it is not freed before the engine's lock is held */
    }
  }
  pthread_mutex_unlock(&attempts_lock);
  *is_known = attempt != NULL;
  *connection = NULL;
  if (!attempt) {
    return 0;
  }
  struct engine *engine = attempt->engine;
  engine_progress(engine);
  engine_lock(engine);
  int error = attempt->state == ATTEMPT_FAILED ? attempt->last_error : 0;
  bool is_over = attempt->state == ATTEMPT_FAILED || attempt->state == ATTEMPT_MADE;
  *connection = attempt->connection;
  if (is_over) {
    pthread_mutex_lock(&attempts_lock);
    list_remove(&attempt->node);
    pthread_mutex_unlock(&attempts_lock);
    attempt_free(attempt);
  }
  engine_unlock(engine);
  return error;
}

void attempt_drop_all(struct engine *engine) {
  pthread_mutex_lock(&attempts_lock);
  LIST_FOR_EACH_SAFE(node, &attempts) {
    struct attempt *attempt = LIST_ENTRY(node, struct attempt, node);
    if (attempt->engine == engine) {
      list_remove(node);
      attempt_free(attempt);
    }
  }
  pthread_mutex_unlock(&attempts_lock);
}
