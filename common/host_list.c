/* SPDX-License-Identifier: Apache-2.0 */
/* See host_list.h: lines, entries, and hosts that are named again. */
#include "common/host_list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/host_entry.h"
#include "common/node_list.h"
#include "common/plain.h"

#define UTF8_MARK "\xEF\xBB\xBF"

struct reader {
  struct host_list *list;
  char *error;
  const char *file; /* NULL: a list */
  int line;
  bool has_any;
  int next; /* behind the host that was found last */
};

__attribute__((format(printf, 2, 3))) static int reject(struct reader *reader, const char *format,
                                                        ...) {
  va_list arguments;
  int used = 0;
  if (reader->file) {
    used = snprintf(reader->error, HOST_LIST_ERROR_MAX / 2, "%s:%d: ", reader->file, reader->line);
  }
  size_t at = used < HOST_LIST_ERROR_MAX / 2 ? (size_t)used : HOST_LIST_ERROR_MAX / 2 - 1;
  va_start(arguments, format);
  vsnprintf(reader->error + at, HOST_LIST_ERROR_MAX - at, format, arguments);
  va_end(arguments);
  plain_text(reader->error);
  return -EINVAL;
}

/* ---- hosts ---- */

static bool is_namespace(const char *name) {
  char path[HOST_NAME_MAX_BYTES + 16];
  struct stat status;
  snprintf(path, sizeof path, "/run/netns/%s", name);
  return !strchr(name, '/') && stat(path, &status) == 0 && S_ISREG(status.st_mode); /* not ".." */
}

/* Named before, or NULL. Not for this machine, which is another host each time it is named. Hosts
 * that come again mostly do so in the same order. */
static struct host *find_host(struct reader *reader, const struct host *wanted) {
  const struct host_list *list = reader->list;
  for (int i = 0; i < list->count && wanted->kind != HOST_LOCAL; i++) {
    int place = (reader->next + i) % list->count;
    struct host *host = &list->hosts[place];
    if (host->kind == wanted->kind && host->port == wanted->port &&
        strcmp(host->name, wanted->name) == 0) {
      reader->next = place + 1;
      return host;
    }
  }
  return NULL;
}

/* NULL: out of memory. Doubles at powers of two. */
static struct host *grow(struct host_list *list) {
  if ((list->count & (list->count - 1)) == 0) {
    size_t room = list->count ? 2 * (size_t)list->count : 1;
    struct host *larger = realloc(list->hosts, room * sizeof *larger);
    if (!larger) {
      return NULL;
    }
    list->hosts = larger;
  }
  return &list->hosts[list->count++];
}

static int add_host(struct reader *reader, const struct host *host) {
  reader->has_any = true;
  struct host *again = find_host(reader, host);
  if (again) {
    int slots = (again->slots ? again->slots : 1) + (host->slots ? host->slots : 1);
    again->slots = slots;
    return slots <= HOST_SLOTS_MAX ? 0
                                   : reject(reader, "%s: more than %d processes on one host",
                                            host->name, HOST_SLOTS_MAX);
  }
  if (reader->list->count == HOST_LIST_MAX) {
    return reject(reader, "more than %d hosts", HOST_LIST_MAX);
  }
  struct host *added = grow(reader->list);
  if (!added) {
    return reject(reader, "out of memory");
  }
  *added = *host;
  return 0;
}

/* One of the hosts that an entry stands for. */
static int add_named(struct reader *reader, const struct host_entry *entry, const char *name) {
  struct host host = { .kind = entry->kind, .slots = entry->slots, .port = entry->port };
  if (entry->is_plain && !entry->user[0] && is_namespace(name)) {
    host.kind = HOST_NAMESPACE;
  }
  const char *problem =
      host.kind == HOST_NAMESPACE || entry->is_address ? NULL : host_entry_problem(name);
  if (host.kind == HOST_NAMESPACE && !is_namespace(name)) {
    problem = "there is no such network namespace (ip netns list)";
  } else if (host.kind == HOST_NAMESPACE && entry->user[0]) {
    problem = "only a host for ssh has a user";
  }
  if (problem) {
    return reject(reader, "\"%s\" is not a host: %s", name, problem);
  }
  int length =
      snprintf(host.name, sizeof host.name, "%s%s%s", entry->user, entry->user[0] ? "@" : "", name);
  return length < (int)sizeof host.name ? add_host(reader, &host)
                                        : reject(reader, "\"%s\" is too long", name);
}

static int add_local(struct reader *reader, const struct host_entry *entry) {
  int error = entry->user[0] || entry->port ? reject(reader, "local has neither user nor port") : 0;
  for (int i = 0; i < entry->count && error == 0; i++) {
    const struct host host = { .kind = HOST_LOCAL, .slots = entry->slots };
    error = add_host(reader, &host);
  }
  return error;
}

static int add_command(struct reader *reader, const struct host_entry *entry) {
  struct host host = { .kind = HOST_COMMAND };
  memcpy(host.name, entry->name, sizeof host.name);
  return add_host(reader, &host);
}

static int add_entry(struct reader *reader, const char *text) {
  struct host_entry entry;
  char why[HOST_WHY_MAX], name[HOST_NAME_MAX_BYTES];
  unsigned names = 1;
  char *copy = strdup(text);
  int error = copy ? host_entry_read(copy, &entry, why) : -ENOMEM;
  free(copy);
  if (error == -ENOMEM) {
    return reject(reader, "out of memory");
  }
  if (error == 0 && entry.kind == HOST_LOCAL) {
    return add_local(reader, &entry);
  }
  if (error == 0 && entry.kind == HOST_COMMAND) {
    return add_command(reader, &entry);
  }
  if (error == 0 && !entry.is_address && node_list_count(entry.name, &names) != 0) {
    snprintf(why, sizeof why,
             "a list of numbers is written as in node[01-16,20], of %d hosts at most",
             NODE_LIST_MAX);
    error = -EINVAL;
  }
  if (error != 0) {
    return reject(reader, "\"%.200s\" is not a host: %s", text, why);
  }
  if (entry.is_address) {
    return add_named(reader, &entry, entry.name);
  }
  for (unsigned i = 0; i < names && error == 0; i++) {
    error = node_list_name(entry.name, i, name, sizeof name);
    error = error == 0 ? add_named(reader, &entry, name)
                       : reject(reader, "\"%.200s\" is not a host: its names are too long", text);
  }
  return error;
}

/* ---- text ---- */

/* Entries of a line, separated by commas; an empty one is none. */
static int read_line(struct reader *reader, char *line) {
  line[strcspn(line, "#")] = '\0';
  for (bool is_last = false; !is_last;) {
    size_t length = node_list_entry(line);
    char *entry = line + strspn(line, " \t"), *end = line + length;
    is_last = *end == '\0';
    line = is_last ? end : end + 1;
    *end = '\0';
    while (end > entry && strchr(" \t", end[-1])) {
      *--end = '\0';
    }
    int error = *entry ? add_entry(reader, entry) : 0;
    if (error != 0) {
      return error;
    }
  }
  return 0;
}

/* Lines end as on Unix, as on Windows, or with a carriage return alone. */
static int read_text(struct reader *reader, char *text) {
  int error = 0;
  reader->line = 0;
  while (*text && error == 0) {
    char *end = text + strcspn(text, "\r\n"), *next = end;
    next += end[0] == '\r' && end[1] == '\n' ? 2 : end[0] ? 1 : 0;
    *end = '\0';
    reader->line++;
    error = read_line(reader, text);
    text = next;
  }
  return error;
}

/* The whole file; NULL with errno: EILSEQ if it has a null character, as UTF-16 has. */
static char *load(const char *path) {
  FILE *file = fopen(path, "re");
  char *text = NULL;
  size_t room = 0;
  if (!file) {
    return NULL;
  }
  ssize_t length = getdelim(&text, &room, '\0', file);
  int error = length > 0 && text[length - 1] == '\0' ? EILSEQ : 0;
  if (length < 0) {
    error = feof(file) ? 0 : errno;
    free(text);
    text = error ? NULL : strdup("");
  } else if (error) {
    free(text);
    text = NULL;
  }
  fclose(file);
  errno = error ? error : errno;
  return text;
}

static int read_file(struct reader *reader, const char *path) {
  char *text = load(path);
  if (!text) {
    int error = errno;
    reader->file = NULL;
    return error == EILSEQ ? reject(reader,
                                    "%s: it has null characters: save it as UTF-8 text, or name a "
                                    "command as cmd:%s",
                                    path, path)
                           : reject(reader, "%s: %s", path, strerror(error));
  }
  bool has_mark = strncmp(text, UTF8_MARK, strlen(UTF8_MARK)) == 0;
  int error = read_text(reader, text + (has_mark ? strlen(UTF8_MARK) : 0));
  free(text);
  return error;
}

static int read_list(struct reader *reader, const char *list) {
  char *copy = strdup(list);
  int error = copy ? read_text(reader, copy) : reject(reader, "out of memory");
  free(copy);
  return error;
}

/* Several on one machine need names of their own. */
static void name_local(struct host_list *list) {
  int count = 0;
  for (int i = 0; i < list->count; i++) {
    count += list->hosts[i].kind == HOST_LOCAL;
  }
  for (int i = 0; i < list->count; i++) {
    struct host *host = &list->hosts[i];
    if (host->kind == HOST_LOCAL) {
      snprintf(host->name, sizeof host->name, "local");
      if (count > 1) {
        snprintf(host->name, sizeof host->name, "local%d", i);
      }
    }
  }
}

int host_list_read(struct host_list *list, const char *argument, char error[HOST_LIST_ERROR_MAX]) {
  struct stat status;
  struct reader reader = { .list = list, .error = error };
  /* A pipe: <(scontrol show hostnames) of a shell. */
  bool is_file =
      stat(argument, &status) == 0 && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode));
  reader.file = is_file ? argument : NULL;
  int result = is_file ? read_file(&reader, argument) : read_list(&reader, argument);
  if (result == 0 && !reader.has_any) {
    reader.file = NULL;
    result = reject(&reader, "%s: there is no host in it", *argument ? argument : "\"\"");
  }
  name_local(list);
  return result;
}

void host_list_free(struct host_list *list) {
  free(list->hosts);
  *list = (struct host_list){ 0 };
}

/* USER@[ADDRESS], in which most is missing. */
static void write_name(const struct host *host, FILE *out) {
  const char *address = host_address(host);
  fprintf(out, strchr(address, ':') ? "%.*s[%s]" : "%.*s%s", (int)(address - host->name),
          host->name, address);
}

/* A command has no attributes: it is named again. */
static void write_host(const struct host *host, FILE *out) {
  int times = host->kind == HOST_COMMAND && host->slots ? host->slots : 1;
  switch (host->kind) {
  case HOST_LOCAL:
    fputs("local", out);
    break;
  case HOST_NAMESPACE:
    fprintf(out, "ns:%s", host->name);
    break;
  case HOST_SSH:
    fputs("ssh:", out);
    write_name(host, out);
    break;
  case HOST_COMMAND:
    for (int i = 0; i < times; i++) {
      fprintf(out, "%scmd:%s", i ? "\n" : "", host->name);
    }
    return;
  }
  if (host->port) {
    fprintf(out, ":%d", host->port);
  }
  if (host->slots) {
    fprintf(out, " slots=%d", host->slots);
  }
}

char *host_list_write(const struct host_list *list) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  for (int i = 0; out && i < list->count; i++) {
    fputs(i ? "\n" : "", out); /* a command may have half a bracket, in which commas do not count */
    write_host(&list->hosts[i], out);
  }
  bool has_failed = !out || ferror(out);
  if (out && fclose(out) != 0) {
    has_failed = true;
  }
  if (has_failed) {
    free(text);
    text = NULL;
  }
  return text;
}

bool host_list_is_one_machine(const struct host_list *list) {
  for (int i = 0; i < list->count; i++) {
    if (list->hosts[i].kind != HOST_LOCAL && list->hosts[i].kind != HOST_NAMESPACE) {
      return false;
    }
  }
  return true;
}

const char *host_address(const struct host *host) {
  const char *at = strrchr(host->name, '@');
  return at ? at + 1 : host->name;
}
