/* SPDX-License-Identifier: Apache-2.0 */
/* Connects all members with each other and lets them agree: all go on, or none does.
 *
 * NCCL agrees on a failed set-up within one host only (ncclTransportCollNetCheck,
 * src/transport/coll_net.cc at v2.30.7), so the members must agree by themselves, or one host would
 * wait for ever for another that went on without CollNet:
 *
 *   1. everyone connects to everyone and says hello, twice: once per phase
 *   2. everyone sends everyone its verdict: do all hellos fit?
 *   3. who has a good verdict of everyone, and gave one, succeeds
 *
 * A member that gave a good verdict waits for those of the others longer than it took to come to
 * its own, so a slow host is not left alone; it gives up when a connection ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/param.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/collnet/hello.h"
#include "net_plugin/collnet/limits.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/connection/nic_totals.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"

struct collnet_listener {
  int device;
  struct listener *listener;
};

/* What becomes of one connection at set-up. */
struct arrival {
  struct connection *connection;
  struct request *request;
  bool is_done;
  uint8_t bytes[COLLNET_HELLO_BYTES];
};

struct setup_member {
  uint8_t handles[COLLNET_PHASES][HANDLE_BYTES]; /* connecting writes into them */
  struct arrival out[COLLNET_PHASES];
  struct arrival verdict_out, verdict_in;
  char host[HELLO_HOST_BYTES]; /* empty: not heard of */
};

struct setup {
  struct collnet_group *group;
  struct collnet_listener *listener;
  struct collnet_hello hello;
  uint8_t hello_bytes[COLLNET_PHASES][COLLNET_HELLO_BYTES];
  struct setup_member members[COLLNET_MEMBERS_MAX];
  struct arrival in[COLLNET_PHASES * COLLNET_MEMBERS_MAX]; /* accepted, as they come */
  uint8_t verdict;                                         /* ours: 1 good, 0 bad */
  unsigned accepted, hellos;                               /* hellos: that came */
  uint64_t deadline_ns;
  char reason[HELLO_TEXT_BYTES]; /* why the verdict is bad; empty: it is good */
};

/* STRATUS_CONNECT_TIMEOUT, if that is less. */
static uint64_t setup_ns(void) {
  uint64_t timeout_ns = param_duration_ns(PARAM_CONNECT_TIMEOUT);
  return timeout_ns < COLLNET_SETUP_NS ? timeout_ns : COLLNET_SETUP_NS;
}

static unsigned peers_of(const struct setup *setup) {
  return setup->group->members - 1;
}

/* ---- listen ---- */

/* What could not listen has a handle of zeros, to which nobody can connect. */
static struct collnet_listener no_listener;

void collnet_listen(int device, void *handle, struct collnet_listener **out) {
  struct collnet_listener *listener = calloc(1, sizeof(*listener));
  if (listener) {
    listener->device = device;
  }
  if (!listener || plugin_listen(device, handle, &listener->listener)) {
    free(listener);
    listener = &no_listener;
    memset(handle, 0, HANDLE_BYTES);
  }
  *out = listener;
}

void collnet_close_listener(struct collnet_listener *listener) {
  if (listener && listener != &no_listener) {
    listener_close(listener->listener);
    free(listener);
  }
}

/* ---- one message of set-up ---- */

/* Posts and tests; is_done says when it is through. */
static int advance(struct arrival *arrival, void *bytes, size_t length, size_t *received) {
  int rc = 0;
  if (!arrival->request) {
    rc = plugin_post(arrival->connection, bytes, length, NULL, &arrival->request);
  }
  if (!rc && arrival->request) {
    rc = plugin_test(arrival->request, &arrival->is_done, received);
    if (arrival->is_done) {
      arrival->request = NULL;
    }
  }
  return rc;
}

/* ---- 1. connect, accept, hello ---- */

static int connect_one(struct setup *setup, enum collnet_phase phase, unsigned member) {
  struct arrival *out = &setup->members[member].out[phase];
  if (!out->connection) {
    int rc =
        plugin_connect(NULL, setup->listener->device, PLUGIN_TRAFFIC_CLASS_NONE, peers_of(setup),
                       setup->members[member].handles[phase], &out->connection);
    if (rc || !out->connection) {
      return rc;
    }
    collnet_path(setup->group, phase, COLLNET_SEND, member)->connection = out->connection;
  }
  size_t ignored;
  return out->is_done ? 0 : advance(out, setup->hello_bytes[phase], COLLNET_HELLO_BYTES, &ignored);
}

/* A hello came: whose connection is this? What does not fit is remembered, not an error: the
 * others are to hear of it. */
static int take_hello(struct setup *setup, struct arrival *in, size_t length) {
  struct collnet_hello theirs;
  int rc = collnet_hello_decode(in->bytes, length, &setup->hello, &theirs);
  struct collnet_path *path =
      rc ? NULL : collnet_path(setup->group, theirs.phase, COLLNET_RECEIVE, theirs.member);
  if (rc || path->connection) {
    LOG_WARN("CollNet: a member sent no valid hello (%zu bytes)", length);
    return -EPROTO;
  }
  path->connection = in->connection;
  in->connection = NULL; /* the group's now */
  memcpy(setup->members[theirs.member].host, theirs.host, HELLO_HOST_BYTES);
  setup->hellos++;
  if (!setup->reason[0]) {
    collnet_hello_compare(&setup->hello, &theirs, setup->reason);
  }
  return 0;
}

static int accept_some(struct setup *setup) {
  if (setup->accepted < COLLNET_PHASES * peers_of(setup)) {
    struct arrival *in = &setup->in[setup->accepted];
    int rc = listener_accept(setup->listener->listener, &in->connection);
    if (rc) {
      return rc;
    }
    setup->accepted += in->connection != NULL;
  }
  for (unsigned i = 0; i < setup->accepted; i++) {
    struct arrival *in = &setup->in[i];
    size_t length = 0;
    int rc = in->is_done ? 0 : advance(in, in->bytes, sizeof(in->bytes), &length);
    if (!rc && in->connection && in->is_done) {
      rc = take_hello(setup, in, length);
    }
    if (rc) {
      return rc;
    }
  }
  return 0;
}

static void pause_briefly(void) {
  struct timespec time = clock_timespec(COLLNET_POLL_NS);
  nanosleep(&time, NULL);
}

/* Who has not said hello, or not taken ours, for the log. */
static void name_missing(const struct setup *setup) {
  for (unsigned member = 0; member < setup->group->members; member++) {
    bool is_there = true;
    for (unsigned phase = 0; phase < COLLNET_PHASES; phase++) {
      is_there &= collnet_path(setup->group, phase, COLLNET_RECEIVE, member)->connection != NULL &&
                  setup->members[member].out[phase].is_done;
    }
    if (member != setup->group->member && !is_there) {
      const char *host = setup->members[member].host;
      LOG_WARN("CollNet: member %u of %u%s%s did not connect within %.3g s: NCCL goes on without "
               "CollNet. Is stratus loaded there, with STRATUS_COLLNET=%s and "
               "NCCL_COLLNET_ENABLE=1?",
               member, setup->group->members, host[0] ? ", host " : "", host,
               (double)setup_ns() / NS_PER_S, collnet_mode_name(setup->group->mode));
    }
  }
}

static int exchange_hellos(struct setup *setup) {
  for (;;) {
    bool is_done = setup->hellos == COLLNET_PHASES * peers_of(setup);
    for (unsigned i = 0; i < COLLNET_PHASES * setup->group->members; i++) {
      unsigned phase = i / setup->group->members, member = i % setup->group->members;
      if (member != setup->group->member) {
        int rc = connect_one(setup, phase, member);
        if (rc) {
          LOG_WARN(
              "CollNet: member %u of %u cannot be connected to, for the reason above: NCCL goes on "
              "without CollNet",
              member, setup->group->members);
          return rc;
        }
        is_done &= setup->members[member].out[phase].is_done;
      }
    }
    int rc = accept_some(setup);
    if (rc || is_done) {
      return rc;
    }
    if (clock_now_ns() > setup->deadline_ns) {
      name_missing(setup);
      return -ETIMEDOUT;
    }
    pause_briefly();
  }
}

/* ---- 2. and 3. the verdict ---- */

/* Ours to one member, and its own if ours is good. Those that did not connect get and say nothing.
 */
static int exchange_verdict(struct setup *setup, unsigned member, unsigned *left) {
  struct setup_member *with = &setup->members[member];
  struct arrival *out = &with->verdict_out, *in = &with->verdict_in;
  size_t length = 0;
  int rc = 0;
  out->connection =
      collnet_path(setup->group, COLLNET_CONTRIBUTE, COLLNET_SEND, member)->connection;
  in->connection =
      setup->verdict
          ? collnet_path(setup->group, COLLNET_CONTRIBUTE, COLLNET_RECEIVE, member)->connection
          : NULL;
  if (out->connection && !out->is_done) {
    rc = advance(out, &setup->verdict, sizeof(setup->verdict), &length);
    *left += !out->is_done;
  }
  if (!rc && in->connection && !in->is_done) {
    rc = advance(in, in->bytes, 1, &length);
    *left += !in->is_done;
    if (in->is_done && (length != 1 || in->bytes[0] != 1)) {
      LOG_WARN("CollNet: host %s cannot: NCCL goes on without CollNet; its log says why",
               with->host);
      rc = -ECONNREFUSED;
    }
  }
  return rc;
}

static int exchange_verdicts(struct setup *setup) {
  int rc = 0;
  unsigned left = 1;
  while (!rc && left) {
    left = 0;
    for (unsigned member = 0; member < setup->group->members && !rc; member++) {
      rc = exchange_verdict(setup, member, &left);
    }
    if (!rc && left && clock_now_ns() > setup->deadline_ns) {
      LOG_WARN("CollNet: the other hosts have not all said within %.3g s whether they can: NCCL "
               "goes on without CollNet",
               2 * (double)setup_ns() / NS_PER_S);
      rc = -ETIMEDOUT;
    }
    if (left) {
      pause_briefly();
    }
  }
  return rc;
}

/* ---- all of it ---- */

static void setup_init(struct setup *setup, void *const *handles) {
  const struct collnet_group *group = setup->group;
  setup->hello = (struct collnet_hello){ .version = HELLO_WIRE_VERSION,
                                         .members = group->members,
                                         .member = group->member,
                                         .mode = group->mode };
  gethostname(setup->hello.host, sizeof(setup->hello.host) - 1);
  for (uint32_t phase = 0; phase < COLLNET_PHASES; phase++) {
    for (unsigned member = 0; member < group->members; member++) {
      memcpy(setup->members[member].handles[phase], handles[member], HANDLE_BYTES);
    }
    setup->hello.phase = phase;
    collnet_hello_encode(&setup->hello, setup->hello_bytes[phase]);
  }
  setup->deadline_ns = clock_now_ns() + setup_ns();
}

/* After the group's connections are closed, if it failed: what they still send and receive is here.
 */
static void setup_fini(struct setup *setup) {
  for (unsigned i = 0; i < setup->accepted; i++) {
    if (setup->in[i].connection) {
      connection_detach(setup->in[i].connection);
    }
  }
  free(setup);
}

static int agree(struct setup *setup, void *const *handles) {
  setup_init(setup, handles);
  int rc = exchange_hellos(setup);
  if (!rc && setup->reason[0]) {
    LOG_WARN("CollNet: %s. NCCL goes on without CollNet", setup->reason);
    rc = -EPROTO;
  }
  /* More for the verdict of others, who wait as long for their own. */
  setup->deadline_ns = clock_now_ns() + 2 * setup_ns();
  setup->verdict = rc == 0;
  int verdict_rc = exchange_verdicts(setup);
  return rc ? rc : verdict_rc;
}

int collnet_connect(void *const *handles, int members, int member,
                    struct collnet_listener *listener, struct collnet_group **out) {
  *out = NULL;
  if (members < 2 || members > COLLNET_MEMBERS_MAX || member < 0 || member >= members) {
    LOG_WARN("CollNet: %d hosts, accepted are 2 to %d: NCCL goes on without CollNet", members,
             COLLNET_MEMBERS_MAX);
    return -ENOTSUP;
  }
  static const uint8_t zeros[HANDLE_BYTES];
  for (int i = 0; i < members; i++) {
    if (memcmp(handles[i], zeros, sizeof(zeros)) == 0) {
      LOG_WARN("CollNet: member %d of %d could not listen: NCCL goes on without CollNet%s", i,
               members, i == member ? "" : "; its log says why");
      return -ENOTCONN;
    }
  }
  struct setup *setup = calloc(1, sizeof(*setup));
  struct nic nic;
  int rc = plugin_device_nic(listener->device, &nic);
  if (rc) {
    free(setup);
    return rc;
  }
  struct collnet_group *group =
      setup ? group_create(collnet_mode(), (unsigned)members, (unsigned)member, nic_totals_of(&nic))
            : NULL;
  if (!group) {
    free(setup);
    return -ENOMEM;
  }
  setup->group = group;
  setup->listener = listener;
  rc = agree(setup, handles);
  if (rc) {
    group_destroy(group);
  }
  setup_fini(setup);
  if (rc) {
    return rc;
  }
  LOG_INFO("CollNet: member %d of %d, STRATUS_COLLNET=%s", member, members,
           collnet_mode_name(group->mode));
  *out = group;
  return 0;
}
