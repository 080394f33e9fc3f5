/* SPDX-License-Identifier: Apache-2.0 */
/* See check_event.h. A datagram is lines: "stratus-check 2", the token, numbers, host, its id,
 * text. The numbers are kind, pid, ranks, nodes, communicator, number, rank and size. */
#include "common/check_event.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/launcher.h"
#include "common/plain.h"
#include "common/sysfs.h"

#define CHECK_FIRST_LINE "stratus-check 2"

/* ---- sending ---- */

static void find_rank(struct check_event *event) {
  struct launcher_place place;
  char error[256];
  if (launcher_find(&place, error, sizeof error) == 1) {
    event->rank = place.rank;
    event->size = place.size;
  }
}

void check_event_begin(enum check_kind kind, struct check_event *event) {
  static atomic_ulong numbers;
  *event = (struct check_event){ .kind = kind, .pid = (long)getpid() };
  event->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
  find_rank(event);
  gethostname(event->host, sizeof event->host - 1);
  const char *id = getenv("NCCL_HOSTID");
  if (id && *id) {
    snprintf(event->host_id, sizeof event->host_id, "%s", id);
    return;
  }
  char boot[64] = "";
  sysfs_read_text("/", boot, sizeof boot, "proc/sys/kernel/random/boot_id");
  snprintf(event->host_id, sizeof event->host_id, "%s %s", event->host, boot);
}

size_t check_event_format(const struct check_event *event, const char *token,
                          char bytes[CHECK_DATAGRAM_MAX]) {
  struct check_event clean = *event;
  int length = snprintf(bytes, CHECK_DATAGRAM_MAX,
                        "%s\n%s\n%d %ld %lu %lu %" PRIx64 " %lu %d %d\n%s\n%s\n%s\n",
                        CHECK_FIRST_LINE, token, (int)event->kind, event->pid, event->ranks,
                        event->nodes, event->communicator, event->number, event->rank, event->size,
                        plain_text(clean.host), plain_text(clean.host_id), plain_text(clean.text));
  return length < CHECK_DATAGRAM_MAX ? (size_t)length : CHECK_DATAGRAM_MAX - 1;
}

/* To "10.0.0.1:4000" or "[fd00::1]:4000", the first `length` characters of the text. */
static void send_to(const char *text, size_t length, const char *bytes, size_t count) {
  const struct addrinfo numbers = { .ai_socktype = SOCK_DGRAM,
                                    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
  char copy[INET6_ADDRSTRLEN + sizeof "[]:65535"], *host = copy;
  struct addrinfo *to;
  snprintf(copy, sizeof copy, "%.*s", (int)length, text);
  char *colon = strrchr(copy, ':');
  if (!colon || length >= sizeof copy) {
    return;
  }
  *colon = '\0';
  if (copy[0] == '[' && colon[-1] == ']') {
    colon[-1] = '\0';
    host++;
  }
  if (getaddrinfo(host, colon + 1, &numbers, &to) != 0) {
    return;
  }
  int fd = DESCRIPTOR(socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd >= 0) {
    sendto(fd, bytes, count, MSG_NOSIGNAL, to->ai_addr, to->ai_addrlen);
    descriptor_close(fd);
  }
  freeaddrinfo(to);
}

static void send_event(const struct check_event *event, const char *where) {
  char token[CHECK_TOKEN_CHARS + 1], bytes[CHECK_DATAGRAM_MAX];
  snprintf(token, sizeof token, "%s", where);
  size_t length = check_event_format(event, token, bytes);
  for (const char *next = where + CHECK_TOKEN_CHARS + 1; *next;) {
    size_t chars = strcspn(next, ",");
    send_to(next, chars, bytes, length);
    next += chars + (next[chars] == ',');
  }
}

/* NULL: nobody wants to know. */
static const char *listeners(void) {
  const char *where = getenv(CHECK_VARIABLE);
  bool is_good =
      where && strcspn(where, "@") == CHECK_TOKEN_CHARS && where[CHECK_TOKEN_CHARS] != '\0';
  return is_good ? where : NULL;
}

void check_event_send(enum check_kind kind, const char *text) {
  int saved = errno;
  const char *where = listeners();
  if (where) {
    struct check_event event;
    check_event_begin(kind, &event);
    snprintf(event.text, sizeof event.text, "%s", text ? text : "");
    send_event(&event, where);
  }
  errno = saved;
}

void check_event_send_communicator(uint64_t communicator, unsigned long ranks,
                                   unsigned long nodes) {
  int saved = errno;
  const char *where = listeners();
  if (where) {
    struct check_event event;
    check_event_begin(CHECK_COMMUNICATOR, &event);
    event.communicator = communicator;
    event.ranks = ranks;
    event.nodes = nodes;
    send_event(&event, where);
  }
  errno = saved;
}

/* ---- receiving ---- */

bool check_event_parse(const char *bytes, size_t length, const char *token,
                       struct check_event *event) {
  char copy[CHECK_DATAGRAM_MAX + 1], *rest = copy, *line[6];
  snprintf(copy, sizeof copy, "%.*s", (int)length, bytes);
  for (int i = 0; i < 6; i++) {
    line[i] = strsep(&rest, "\n");
    if (!rest) {
      return false;
    }
    plain_text(line[i]);
  }
  int kind;
  *event = (struct check_event){ 0 };
  if (strcmp(line[0], CHECK_FIRST_LINE) != 0 || strcmp(line[1], token) != 0 ||
      sscanf(line[2], "%d %ld %lu %lu %" SCNx64 " %lu %d %d", &kind, &event->pid, &event->ranks,
             &event->nodes, &event->communicator, &event->number, &event->rank,
             &event->size) != 8 ||
      kind < 0 || kind >= CHECK_KIND_COUNT || event->size < 0 || event->size > LAUNCHER_SIZE_MAX ||
      event->rank < 0 || (event->size > 0 && event->rank >= event->size)) {
    return false;
  }
  event->kind = (enum check_kind)kind;
  snprintf(event->host, sizeof event->host, "%s", line[3]);
  snprintf(event->host_id, sizeof event->host_id, "%s", line[4]);
  snprintf(event->text, sizeof event->text, "%s", line[5]);
  return event->host[0] != '\0';
}
