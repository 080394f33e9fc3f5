/* SPDX-License-Identifier: Apache-2.0 */
/* See check_event.h. A datagram is lines: "stratus-check 2", the token, numbers, host, its id,
 * text. The numbers are kind, pid, ranks, nodes, communicator, number, rank and size. */
#include "common/check_event.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptor.h"
#include "common/launcher.h"

#define CHECK_FIRST_LINE "stratus-check 2"

/* A line of foreign text. */
static void copy_line(char *to, size_t size, const char *from, size_t length) {
  if (length >= size) {
    length = size - 1;
  }
  for (size_t i = 0; i < length; i++) {
    to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
  }
  to[length] = '\0';
}

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
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file) {
    boot[fread(boot, 1, sizeof boot - 1, file)] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    fclose(file);
  }
  snprintf(event->host_id, sizeof event->host_id, "%s %s", event->host, boot);
}

size_t check_event_format(const struct check_event *event, const char *token,
                          char bytes[CHECK_DATAGRAM_MAX]) {
  struct check_event clean = *event;
  copy_line(clean.host, sizeof clean.host, event->host, strlen(event->host));
  copy_line(clean.host_id, sizeof clean.host_id, event->host_id, strlen(event->host_id));
  copy_line(clean.text, sizeof clean.text, event->text, strlen(event->text));
  int length =
      snprintf(bytes, CHECK_DATAGRAM_MAX,
               "%s\n%s\n%d %ld %lu %lu %" PRIx64 " %lu %d %d\n%s\n%s\n%s\n", CHECK_FIRST_LINE,
               token, (int)event->kind, event->pid, event->ranks, event->nodes, event->communicator,
               event->number, event->rank, event->size, clean.host, clean.host_id, clean.text);
  return length < CHECK_DATAGRAM_MAX ? (size_t)length : CHECK_DATAGRAM_MAX - 1;
}

/* "10.0.0.1:4000" or "[fd00::1]:4000" */
static bool parse_address(const char *text, size_t length, struct sockaddr_storage *address,
                          socklen_t *bytes) {
  char host[INET6_ADDRSTRLEN + 2];
  size_t colon = length;
  while (colon > 0 && text[colon - 1] != ':') {
    colon--;
  }
  bool is_v6 = length > 0 && text[0] == '[';
  size_t host_length = colon > 0 ? colon - 1 : 0;
  if (is_v6) {
    text++;
    host_length = host_length < 2 ? 0 : host_length - 2;
    colon--;
  }
  if (host_length == 0 || host_length >= sizeof host) {
    return false;
  }
  memcpy(host, text, host_length);
  host[host_length] = '\0';
  long port = strtol(text + colon, NULL, 10);
  *address = (struct sockaddr_storage){ 0 };
  struct sockaddr_in *v4 = (struct sockaddr_in *)address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
  address->ss_family = is_v6 ? AF_INET6 : AF_INET;
  *bytes = is_v6 ? sizeof *v6 : sizeof *v4;
  v4->sin_port = htons((uint16_t)port); /* at the same place in both */
  return port > 0 && port <= UINT16_MAX &&
         inet_pton(address->ss_family, host,
                   is_v6 ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) == 1;
}

static void send_to(const struct sockaddr_storage *address, socklen_t address_bytes,
                    const char *bytes, size_t length) {
  int fd = DESCRIPTOR(socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd >= 0) {
    sendto(fd, bytes, length, MSG_NOSIGNAL, (const struct sockaddr *)address, address_bytes);
    descriptor_close(fd);
  }
}

static void send_event(const struct check_event *event, const char *where) {
  char token[CHECK_TOKEN_CHARS + 1], bytes[CHECK_DATAGRAM_MAX];
  snprintf(token, sizeof token, "%s", where);
  size_t length = check_event_format(event, token, bytes);
  for (const char *next = where + CHECK_TOKEN_CHARS + 1; *next;) {
    size_t chars = strcspn(next, ",");
    struct sockaddr_storage address;
    socklen_t address_bytes;
    if (parse_address(next, chars, &address, &address_bytes)) {
      send_to(&address, address_bytes, bytes, length);
    }
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

/* Takes the next line off *at; false if there is none. */
static bool next_line(const char **at, const char *end, const char **line, size_t *length) {
  const char *newline = memchr(*at, '\n', (size_t)(end - *at));
  if (!newline) {
    return false;
  }
  *line = *at;
  *length = (size_t)(newline - *at);
  *at = newline + 1;
  return true;
}

static bool is_line(const char *line, size_t length, const char *wanted) {
  return length == strlen(wanted) && memcmp(line, wanted, length) == 0;
}

bool check_event_parse(const char *bytes, size_t length, const char *token,
                       struct check_event *event) {
  const char *at = bytes, *end = bytes + length, *line[6];
  size_t chars[6];
  for (int i = 0; i < 6; i++) {
    if (!next_line(&at, end, &line[i], &chars[i])) {
      return false;
    }
  }
  char numbers[192];
  int kind;
  *event = (struct check_event){ 0 };
  copy_line(numbers, sizeof numbers, line[2], chars[2]);
  if (!is_line(line[0], chars[0], CHECK_FIRST_LINE) || !is_line(line[1], chars[1], token) ||
      sscanf(numbers, "%d %ld %lu %lu %" SCNx64 " %lu %d %d", &kind, &event->pid, &event->ranks,
             &event->nodes, &event->communicator, &event->number, &event->rank,
             &event->size) != 8 ||
      kind < 0 || kind >= CHECK_KIND_COUNT || event->size < 0 || event->size > LAUNCHER_SIZE_MAX ||
      event->rank < 0 || (event->size > 0 && event->rank >= event->size)) {
    return false;
  }
  event->kind = (enum check_kind)kind;
  copy_line(event->host, sizeof event->host, line[3], chars[3]);
  copy_line(event->host_id, sizeof event->host_id, line[4], chars[4]);
  copy_line(event->text, sizeof event->text, line[5], chars[5]);
  return event->host[0] != '\0';
}
