/* SPDX-License-Identifier: Apache-2.0 */
/* See host_entry.h. An entry is a word, and attributes after it; a command is all words. */
#include "common/host_entry.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/quantity.h"

#define BLANKS " \t"
#define ATTRIBUTES "slots=N, max_slots=N and user=NAME"

__attribute__((format(printf, 2, 3))) static int refuse(char why[HOST_WHY_MAX], const char *format,
                                                        ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, HOST_WHY_MAX, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

static bool parse_number(const char *text, int64_t most, int *number) {
  int64_t value;
  if (!isdigit((unsigned char)*text) || quantity_parse_int(text, &value) != 0 || value < 1 ||
      value > most) {
    return false;
  }
  *number = (int)value;
  return true;
}

static int set_slots(struct host_entry *entry, const char *text, char why[HOST_WHY_MAX]) {
  if (entry->slots > 0) {
    return refuse(why, "it says twice how many processes it takes");
  }
  return parse_number(text, HOST_SLOTS_MAX, &entry->slots)
             ? 0
             : refuse(why, "\"%.64s\" is no number of processes from 1 to %d", text,
                      HOST_SLOTS_MAX);
}

/* Ends a word; returns what is behind it. */
static char *cut(char *end) {
  if (*end != '\0') {
    *end++ = '\0';
  }
  return end;
}

/* ---- attributes ---- */

static bool is_one_of(const char *name, const char *const *names) {
  while (*names && strcmp(*names, name) != 0) {
    names++;
  }
  return *names != NULL;
}

static bool is_user(const char *name) {
  for (const char *c = name; *c; c++) {
    if (!isalnum((unsigned char)*c) && !strchr("._+-@\\", *c)) {
      return false;
    }
  }
  return *name && *name != '-';
}

static int set_user(struct host_entry *entry, const char *name, char why[HOST_WHY_MAX]) {
  if (!is_user(name) || (entry->user[0] && strcmp(entry->user, name) != 0)) {
    return refuse(why, "\"%.64s\" is no name of a user, or not the only one", name);
  }
  snprintf(entry->user, sizeof entry->user, "%s", name);
  return 0;
}

/* Open MPI takes any of these. */
static int set_attribute(struct host_entry *entry, const char *name, const char *value,
                         char why[HOST_WHY_MAX]) {
  static const char *const slots[] = { "slots", "slot", "cpus", "cpu", "count", NULL };
  static const char *const most[] = { "max_slots", "max-slots", "slots_max", "slots-max", NULL };
  static const char *const user[] = { "user", "username", NULL };
  if (is_one_of(name, slots)) {
    return set_slots(entry, value, why);
  }
  if (is_one_of(name, user)) {
    return set_user(entry, value, why);
  }
  if (!is_one_of(name, most)) {
    return refuse(why, "%.64s= is not known here; " ATTRIBUTES " are", name);
  }
  return parse_number(value, HOST_SLOTS_MAX, &entry->max_slots)
             ? 0
             : refuse(why, "%s=%.64s: a number from 1 to %d is wanted", name, value,
                      HOST_SLOTS_MAX);
}

/* "slots=8 max_slots = 16" */
static int read_attributes(char *text, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  int error = 0;
  while (error == 0 && *(text += strspn(text, BLANKS))) {
    char *name = text;
    size_t length = strcspn(name, BLANKS "=");
    char *equals = name + length + strspn(name + length, BLANKS);
    if (length == 0 || *equals != '=') {
      return refuse(
          why,
          "\"%.64s\" comes after it, where only " ATTRIBUTES
          " may; a command is written cmd:COMMAND, hosts are separated by commas or lines",
          name);
    }
    char *value = equals + 1 + strspn(equals + 1, BLANKS);
    text = cut(value + strcspn(value, BLANKS));
    name[length] = '\0';
    error = set_attribute(entry, name, value, why);
  }
  if (error == 0 && entry->max_slots > 0 && entry->max_slots < entry->slots) {
    return refuse(why, "it has more slots than max_slots");
  }
  return error;
}

/* ---- the word ---- */

const char *host_entry_problem(const char *name) {
  if (name[strspn(name, "0123456789")] == '\0') {
    return "a number is no name; how many processes a host takes is written HOST:8 or HOST slots=8";
  }
  for (const char *c = name; *c; c++) {
    if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) {
      return "a name has letters, digits, \".\", \"_\" and \"-\"";
    }
  }
  return *name == '-' ? "a name does not begin with \"-\"" : NULL;
}

/* With its zone: fe80::1%eth0. */
static bool is_ipv6(const char *text) {
  char address[INET6_ADDRSTRLEN];
  struct in6_addr number;
  size_t length = strcspn(text, "%");
  if (length >= sizeof address) {
    return false;
  }
  memcpy(address, text, length);
  address[length] = '\0';
  bool has_zone = text[length] == '%';
  return inet_pton(AF_INET6, address, &number) == 1 &&
         (!has_zone || (text[length + 1] && !host_entry_problem(text + length + 1)));
}

/* What follows a colon. */
static int set_number(struct host_entry *entry, const char *text, char why[HOST_WHY_MAX]) {
  int number;
  if (!parse_number(text, UINT16_MAX, &number)) {
    return refuse(why,
                  "after the colon comes how many processes it takes (1 to %d), or a port (%d to "
                  "%d); others are ssh:HOST, ns:NAME, local:N and cmd:COMMAND",
                  HOST_SLOTS_MAX, HOST_SLOTS_MAX + 1, UINT16_MAX);
  }
  *(number <= HOST_SLOTS_MAX ? &entry->slots : &entry->port) = number;
  return 0;
}

static int read_address(const char *text, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  if (!is_ipv6(text)) {
    return refuse(why, "\"%.64s\" is no IPv6 address; [ADDRESS]:8 says that it takes 8 processes",
                  text);
  }
  entry->is_address = true;
  snprintf(entry->name, sizeof entry->name, "%s", text);
  return 0;
}

/* NAME, NAME:8, NAME*8, ADDRESS, [ADDRESS], [ADDRESS]:8 */
static int read_name(char *text, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  char *colon = strchr(text, ':'), *star = strchr(text, '*'), *end = strchr(text, ']');
  if (text[0] == '[' && colon && end && colon < end) {
    *end = '\0';
    int error = read_address(text + 1, entry, why);
    if (error != 0 || end[1] == '\0') {
      return error;
    }
    return end[1] == ':' ? set_number(entry, end + 2, why)
                         : refuse(why, "after \"]\" comes a colon, and a number");
  }
  if (colon && strchr(colon + 1, ':')) {
    return read_address(text, entry, why);
  }
  int error = colon ? set_number(entry, colon + 1, why) : 0;
  text[strcspn(text, ":")] = '\0';
  if (error == 0 && star && (!colon || star < colon)) {
    error = set_slots(entry, star + 1, why);
    *star = '\0';
  }
  snprintf(entry->name, sizeof entry->name, "%s", text);
  return error != 0 || *text ? error : refuse(why, "there is no name");
}

static int read_word(char *word, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  bool is_ssh = strncmp(word, "ssh:", 4) == 0;
  if (strncmp(word, "ns:", 3) == 0) {
    entry->kind = HOST_NAMESPACE;
    return read_name(word + 3, entry, why);
  }
  word += is_ssh ? 4 : 0;
  char *at = strrchr(word, '@');
  entry->is_plain = !is_ssh && !at;
  if (!at) {
    return read_name(word, entry, why);
  }
  *at = '\0';
  int error = set_user(entry, word, why);
  return error != 0 ? error : read_name(at + 1, entry, why);
}

static int read_local(const char *word, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  entry->kind = HOST_LOCAL;
  return word[5] == '\0' || parse_number(word + 6, HOST_LIST_MAX, &entry->count)
             ? 0
             : refuse(why, "local:N takes a number from 1 to %d", HOST_LIST_MAX);
}

/* ---- commands ---- */

static bool is_there(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Keeps the words, with one blank between them. */
static int read_command(const char *text, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  size_t used = 0;
  int words = 0;
  entry->kind = HOST_COMMAND;
  for (size_t length; *(text += strspn(text, BLANKS)); text += length) {
    length = strcspn(text, BLANKS);
    if (++words > HOST_WORDS_MAX || used + length + 2 > sizeof entry->name) {
      return refuse(why, "a command has at most %d words and %zu characters", HOST_WORDS_MAX,
                    sizeof entry->name - 1);
    }
    used += (size_t)snprintf(entry->name + used, sizeof entry->name - used, "%s%.*s",
                             used ? " " : "", (int)length, text);
  }
  char first[HOST_NAME_MAX_BYTES];
  snprintf(first, sizeof first, "%.*s", (int)strcspn(entry->name, " "), entry->name);
  if (words == 0 || (strchr(first, '/') && !is_there(first))) {
    return refuse(why, "there is no such command, nor a file with hosts");
  }
  return 0;
}

int host_entry_read(char *text, struct host_entry *entry, char why[HOST_WHY_MAX]) {
  size_t length = strcspn(text, BLANKS);
  *entry = (struct host_entry){ .kind = HOST_SSH, .count = 1 };
  if (strncmp(text, "cmd:", 4) == 0) {
    return read_command(text + 4, entry, why);
  }
  if (memchr(text, '/', length)) {
    return read_command(text, entry, why);
  }
  if (length >= sizeof entry->name) {
    return refuse(why, "it has more than %zu characters", sizeof entry->name - 1);
  }
  char *rest = cut(text + length);
  bool is_local = strcmp(text, "local") == 0 || strncmp(text, "local:", 6) == 0;
  int error = is_local ? read_local(text, entry, why) : read_word(text, entry, why);
  return error != 0 ? error : read_attributes(rest, entry, why);
}
