/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: text to hosts. */
#include "tuner_plugin/tools/coll/hosts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/quantity.h"

struct parser {
  struct hosts *hosts;
  char *error;
  size_t error_size;
};

__attribute__((format(printf, 2, 3))) static int reject(struct parser *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(p->error, p->error_size, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

static int add_host(struct parser *p, enum host_kind kind, const char *text, const char *name) {
  struct hosts *hosts = p->hosts;
  if (hosts->count == HOSTS_MAX)
    return reject(p, "more than %d hosts", HOSTS_MAX);
  struct host *host = &hosts->hosts[hosts->count];
  if (strlen(text) >= sizeof host->text || strlen(name) >= sizeof host->name)
    return reject(p, "host %s: too long", text);
  *host = (struct host){ .kind = kind, .words = 1 };
  snprintf(host->text, sizeof host->text, "%s", text);
  snprintf(host->name, sizeof host->name, "%s", name);
  hosts->count++;
  return 0;
}

/* Several local hosts need distinct names. */
static int add_local(struct parser *p, const char *count_text) {
  int64_t count = 1;
  char name[32];
  if (count_text && (quantity_parse_int(count_text, &count) || count < 1 || count > HOSTS_MAX))
    return reject(p, "local:%s: accepted: a number from 1 to %d", count_text, HOSTS_MAX);
  for (int64_t i = 0; i < count; i++) {
    snprintf(name, sizeof name, "local%d", p->hosts->count);
    int error = add_host(p, HOST_LOCAL, "", name);
    if (error)
      return error;
  }
  return 0;
}

static bool is_namespace(const char *name) {
  char path[320];
  struct stat status;
  snprintf(path, sizeof path, "/run/netns/%.256s", name);
  return !strchr(name, '/') && !stat(path, &status);
}

static int add_command(struct parser *p, const char *text) {
  char name[128];
  snprintf(name, sizeof name, "%.127s", text);
  int error = add_host(p, HOST_COMMAND, text, name);
  if (error)
    return error;
  struct host *host = &p->hosts->hosts[p->hosts->count - 1];
  char *to = host->text;
  host->words = 0;
  for (const char *word = text; *(word += strspn(word, " \t"));) {
    size_t length = strcspn(word, " \t");
    if (++host->words > HOSTS_WORDS_MAX)
      return reject(p, "host %s: more than %d words", text, HOSTS_WORDS_MAX);
    memmove(to, word, length);
    to[length] = '\0';
    to += length + 1;
    word += length;
  }
  if (strchr(host->text, '/') ? access(host->text, X_OK) != 0 : strchr(host->text, ':') != NULL)
    return reject(p,
                  "host %s: no such command; HOST or ssh:HOST, ns:NAME, local:N or a command is "
                  "wanted",
                  text);
  return 0;
}

static int add_entry(struct parser *p, const char *text) {
  if (!strcmp(text, "local"))
    return add_local(p, NULL);
  if (!strncmp(text, "local:", 6))
    return add_local(p, text + 6);
  if (!strncmp(text, "ssh:", 4))
    return text[4] && text[4] != '-' ? add_host(p, HOST_SSH, text + 4, text + 4)
                                     : reject(p, "%s: not a host name", text);
  bool is_named = !strncmp(text, "ns:", 3);
  const char *name = is_named ? text + 3 : text;
  if (*name && is_namespace(name))
    return add_host(p, HOST_NAMESPACE, name, name);
  if (is_named)
    return reject(p, "%s: there is no such network namespace (ip netns list)", text);
  if (!strpbrk(text, "/ \t:") && *text != '-')
    return add_host(p, HOST_SSH, text, text);
  return add_command(p, text);
}

/* Cuts off remarks and surrounding space; an empty rest is no entry. */
static int add_text(struct parser *p, char *text) {
  text[strcspn(text, "#\n")] = '\0';
  text += strspn(text, " \t");
  for (size_t end = strlen(text); end && strchr(" \t\r", text[end - 1]);)
    text[--end] = '\0';
  return *text ? add_entry(p, text) : 0;
}

static int read_file(struct parser *p, FILE *file) {
  char line[512];
  int error = 0;
  while (!error && fgets(line, sizeof line, file))
    error = add_text(p, line);
  return error;
}

static int read_list(struct parser *p, const char *list) {
  char *copy = strdup(list), *rest = copy;
  int error = copy ? 0 : -ENOMEM;
  for (char *entry; !error && (entry = strsep(&rest, ","));)
    error = add_text(p, entry);
  free(copy);
  return error;
}

int hosts_parse(struct hosts *hosts, const char *argument, char *error, size_t error_size) {
  struct stat status;
  struct parser p = { hosts, error, error_size };
  *hosts = (struct hosts){ .hosts = calloc(HOSTS_MAX, sizeof *hosts->hosts) };
  if (!hosts->hosts)
    return reject(&p, "out of memory");
  bool is_file = !stat(argument, &status) && S_ISREG(status.st_mode);
  FILE *file = is_file ? fopen(argument, "re") : NULL;
  int result;
  if (is_file && !file)
    result = reject(&p, "%s: %s", argument, strerror(errno));
  else
    result = file ? read_file(&p, file) : read_list(&p, argument);
  if (file)
    fclose(file);
  if (!result && !hosts->count)
    result = reject(&p, "--hosts %s: no hosts in it", argument);
  if (result)
    hosts_free(hosts);
  return result;
}

void hosts_free(struct hosts *hosts) {
  free(hosts->hosts);
  *hosts = (struct hosts){ 0 };
}

bool hosts_is_one_machine(const struct hosts *hosts) {
  for (int i = 0; i < hosts->count; i++) {
    if (hosts->hosts[i].kind != HOST_LOCAL && hosts->hosts[i].kind != HOST_NAMESPACE)
      return false;
  }
  return true;
}

int hosts_prefix(struct host *host, char **argv) {
  static char ip[] = "ip", netns[] = "netns", exec[] = "exec";
  static char ssh[] = "ssh", option[] = "-o", batch[] = "BatchMode=yes",
              patience[] = "ConnectTimeout=10";
  int count = 0;
  char *word = host->text;
  switch (host->kind) {
  case HOST_LOCAL:
    return 0;
  case HOST_NAMESPACE:
    argv[count++] = ip;
    argv[count++] = netns;
    argv[count++] = exec;
    argv[count++] = host->text;
    return count;
  case HOST_SSH:
    argv[count++] = ssh;
    argv[count++] = option;
    argv[count++] = batch;
    argv[count++] = option;
    argv[count++] = patience;
    argv[count++] = host->text;
    return count;
  default:
    for (; count < host->words; word += strlen(word) + 1)
      argv[count++] = word;
    return count;
  }
}

/* 'word', with each ' in it as '\'' */
char *hosts_quote(const struct host *host, const char *word) {
  if (host->kind != HOST_SSH)
    return strdup(word);
  char *quoted = malloc(4 * strlen(word) + 3), *to = quoted;
  if (!quoted)
    return NULL;
  *to++ = '\'';
  for (; *word; word++) {
    if (*word == '\'')
      to = stpcpy(to, "'\\''");
    else
      *to++ = *word;
  }
  memcpy(to, "'", 2);
  return quoted;
}
