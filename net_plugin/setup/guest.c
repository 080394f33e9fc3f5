/* SPDX-License-Identifier: Apache-2.0 */
/* See guest.h. */
#include "net_plugin/setup/guest.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"
#include "common/log.h"
#include "common/open_files.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/welcome.h"

#define GUEST_NS (10 * NS_PER_S)
#define WARN_INTERVAL_NS (30 * NS_PER_S)
/* Of IPv6, the network: whoever has one has all addresses in it. */
#define CALLER_KEY_BYTES 8

/* Where guests come from. */
struct caller {
  uint8_t key[CALLER_KEY_BYTES];
  struct list guests; /* oldest first */
  unsigned count;
  struct list_node node;
};

enum guest_state { GUEST_GREETING, GUEST_PROVING };

struct guest {
  struct engine_source source;
  struct engine_timer timer;
  struct guests *guests;
  struct caller *caller;
  struct list_node node;
  int fd;
  struct sockaddr_storage from;
  enum guest_state state;
  uint64_t since_ns; /* when it came */
  size_t got;        /* of what the state waits for */
  struct welcome_talk talk;
};

/* ---- callers ---- */

static void make_key(const struct sockaddr_storage *from, uint8_t key[CALLER_KEY_BYTES]) {
  memset(key, 0, CALLER_KEY_BYTES);
  if (from->ss_family == AF_INET6) {
    memcpy(key, &((const struct sockaddr_in6 *)from)->sin6_addr, CALLER_KEY_BYTES);
  } else {
    memcpy(key, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
  }
}

static struct caller *caller_of(struct guests *guests, const struct sockaddr_storage *from) {
  uint8_t key[CALLER_KEY_BYTES];
  make_key(from, key);
  LIST_FOR_EACH(node, &guests->callers) {
    struct caller *caller = LIST_ENTRY(node, struct caller, node);
    if (memcmp(caller->key, key, CALLER_KEY_BYTES) == 0) {
      return caller;
    }
  }
  struct caller *caller = calloc(1, sizeof *caller);
  if (caller) {
    memcpy(caller->key, key, CALLER_KEY_BYTES);
    list_init(&caller->guests);
    list_push_back(&guests->callers, &caller->node);
  }
  return caller;
}

static void caller_release(struct caller *caller) {
  if (caller->count == 0) {
    list_remove(&caller->node);
    free(caller);
  }
}

/* ---- the end of a guest ---- */

/* The descriptor is the caller's now. It must still be open: once closed, its number may belong to
 * another thread's descriptor, which is not ours to unwatch. */
static void guest_free(struct guest *guest) {
  engine_unwatch(guest->guests->engine, &guest->source);
  engine_timer_stop(&guest->timer);
  list_remove(&guest->node);
  guest->guests->count--;
  guest->caller->count--;
  caller_release(guest->caller);
  free(guest);
}

static void guest_close(struct guest *guest) {
  int fd = guest->fd;
  guest_free(guest);
  descriptor_close(fd);
}

static void warn_dismissed(const struct nic *nic, const struct sockaddr_storage *from,
                           const char *why) {
  char text[TCP_ADDRESS_TEXT];
  LOG_WARN_EVERY(WARN_INTERVAL_NS,
                 "%s: dismissed a connection from %s: %s (a port scanner or a foreign service; the "
                 "job goes on)",
                 nic->name, tcp_address_text(from, text), why);
}

static void guest_dismiss(struct guest *guest, const char *why) {
  warn_dismissed(guest->guests->nic, &guest->from, why);
  guest_close(guest);
}

static void guest_expired(struct engine_timer *timer, uint64_t now_ns) {
  (void)now_ns;
  guest_dismiss(LIST_ENTRY(timer, struct guest, timer), "it did not say in time who it is");
}

static void evict_one(struct guests *guests) {
  struct caller *most = NULL;
  LIST_FOR_EACH(node, &guests->callers) {
    struct caller *caller = LIST_ENTRY(node, struct caller, node);
    if (!most || caller->count > most->count) {
      most = caller;
    }
  }
  guest_dismiss(LIST_ENTRY(list_first(&most->guests), struct guest, node),
                "too many strangers at once");
}

/* ---- what a guest says ---- */

static void hello_arrived(struct guest *guest) {
  struct guests *guests = guest->guests;
  int error = welcome_hello(guests->engine, guests->nic, &guest->talk, guest->fd);
  if (error == -EPROTO) {
    guest_dismiss(guest, "it does not speak this protocol");
  } else if (error) {
    guest_close(guest);
  } else {
    guest->state = GUEST_PROVING;
    guest->got = 0;
  }
}

static void proof_arrived(struct guest *guest) {
  struct guests *guests = guest->guests;
  struct sockaddr_storage from = guest->from;
  struct welcome_talk talk = guest->talk;
  int fd = guest->fd;
  guest_free(guest);
  int error = welcome_proof(guests->engine, guests->nic, &talk, fd, &from);
  if (error) {
    warn_dismissed(guests->nic, &from,
                   error == -EACCES ? "it does not belong to this job"
                                    : "it does not speak this protocol");
  }
}

/* Looks at the beginning before the rest is there: a scanner says less than a hello, and another
 * wire version may have hellos of another size. False: the guest is gone. */
static bool is_ours_so_far(struct guest *guest) {
  enum handshake_kind kind;
  uint16_t wire_version;
  char version[VERSION_TEXT_BYTES];
  int error = handshake_prefix_check(guest->talk.hello, &kind, &wire_version, version);
  if (error == -EPROTONOSUPPORT) {
    welcome_other_version(guest->guests->nic, wire_version, version, guest->fd, &guest->from);
    guest_close(guest);
  } else if (error || kind != HANDSHAKE_HELLO) {
    guest_dismiss(guest, "it does not speak this protocol");
    error = -EPROTO;
  }
  return !error;
}

/* Reads exactly the message that is due: what follows the proof belongs to the lane. */
static void guest_ready(struct engine_source *source, uint32_t events) {
  struct guest *guest = (struct guest *)source;
  (void)events;
  bool is_greeting = guest->state == GUEST_GREETING;
  uint8_t *message = is_greeting ? guest->talk.hello : guest->talk.proof;
  size_t wanted = is_greeting ? HELLO_BYTES : PROOF_BYTES;
  ssize_t n = recv(guest->fd, message + guest->got, wanted - guest->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (n <= 0) {
    /* A health check of the cloud, or a peer that gave up: nothing worth a word. */
    guest_close(guest);
    return;
  }
  guest->got += (size_t)n;
  if (is_greeting && guest->got >= HANDSHAKE_PREFIX_BYTES && !is_ours_so_far(guest)) {
    return;
  }
  if (guest->got == wanted) {
    if (is_greeting) {
      hello_arrived(guest);
    } else {
      proof_arrived(guest);
    }
  }
}

/* ---- all of them ---- */

static atomic_uint ports; /* of the process */

void guests_init(struct guests *guests, struct engine *engine, const struct nic *nic) {
  *guests = (struct guests){ .engine = engine, .nic = nic };
  list_init(&guests->callers);
  atomic_fetch_add(&ports, 1);
}

static unsigned share(void) {
  uint64_t budget = open_files_limit() / GUESTS_PART;
  budget = budget < GUESTS_MAX ? budget : GUESTS_MAX;
  uint64_t each = budget / atomic_load(&ports);
  return each > GUESTS_LEAST ? (unsigned)each : GUESTS_LEAST;
}

/* Each caller's list begins with its oldest. */
static struct guest *find_oldest(const struct guests *guests) {
  struct guest *oldest = NULL;
  LIST_FOR_EACH(node, &guests->callers) {
    const struct caller *caller = LIST_ENTRY(node, struct caller, node);
    struct guest *guest = LIST_ENTRY(list_first(&caller->guests), struct guest, node);
    if (!oldest || guest->since_ns < oldest->since_ns) {
      oldest = guest;
    }
  }
  return oldest;
}

uint64_t guests_oldest_ns(const struct guests *guests) {
  const struct guest *oldest = find_oldest(guests);
  return oldest ? oldest->since_ns : 0;
}

void guests_evict_oldest(struct guests *guests) {
  struct guest *oldest = find_oldest(guests);
  if (oldest) {
    guest_dismiss(oldest, "descriptors are missing, and it has not proved who it is");
  }
}

void guests_admit(struct guests *guests, int fd, const struct sockaddr_storage *from) {
  for (unsigned most = share(); guests->count >= most;) {
    evict_one(guests);
  }
  struct caller *caller = caller_of(guests, from);
  struct guest *guest = caller ? calloc(1, sizeof *guest) : NULL;
  if (!guest) {
    if (caller) {
      caller_release(caller);
    }
    descriptor_close(fd);
    return;
  }
  guest->guests = guests;
  guest->caller = caller;
  guest->fd = fd;
  guest->from = *from;
  guest->since_ns = clock_now_ns();
  guest->source.ready = guest_ready;
  guest->source.fd = -1;
  guest->timer.expired = guest_expired;
  list_push_back(&caller->guests, &guest->node);
  caller->count++;
  guests->count++;
  if (engine_watch(guests->engine, &guest->source, fd, EPOLLIN) != 0) {
    guest_dismiss(guest, "it cannot be watched");
    return;
  }
  engine_timer_set(guests->engine, &guest->timer, guest->since_ns + GUEST_NS);
}

void guests_close_all(struct guests *guests) {
  struct list_node *node;
  while ((node = list_first(&guests->callers))) {
    struct caller *caller = LIST_ENTRY(node, struct caller, node);
    guest_close(LIST_ENTRY(list_first(&caller->guests), struct guest, node));
  }
  atomic_fetch_sub(&ports, 1);
}
