/* SPDX-License-Identifier: Apache-2.0 */
/* See name_list.h. */
#include "common/name_list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/quantity.h"

/* Of the entry after its name: ":1", ":1:0:2" with rail and plane, which are NCCL's own; "::3" has
 * no port. */
static int parse_port(const char *variable, const char *entry, size_t length, size_t name) {
  char text[8];
  const char *at = entry + name + 1;
  size_t port = name < length ? strcspn(at, ":,") : 0;
  int64_t number;
  if (port == 0) {
    return NAME_LIST_ANY_PORT;
  }
  snprintf(text, sizeof text, "%.*s", (int)port, at);
  if (port < sizeof text && quantity_parse_int(text, &number) == 0 && number >= 1 &&
      number <= 255) {
    return (int)number;
  }
  LOG_WARN("%s: \"%.*s\" fits no device: after the colon belongs a port, 1 to 255, as in mlx5_0:1",
           variable, (int)length, entry);
  return NAME_LIST_NO_PORT;
}

static void add(struct name_list *list, const char *variable, const char *entry, size_t length,
                bool has_ports) {
  size_t name = strcspn(entry, ":,");
  if (name == 0) {
    return; /* as NCCL: ",," is nothing */
  }
  if (list->count == NAME_LIST_MAX) {
    LOG_WARN("%s: \"%.*s\" is ignored: at most %d names are possible", variable, (int)length, entry,
             NAME_LIST_MAX);
    return;
  }
  snprintf(list->entries[list->count].name, NAME_LIST_NAME_MAX, "%.*s", (int)name, entry);
  list->entries[list->count++].port =
      has_ports ? parse_port(variable, entry, length, name) : NAME_LIST_ANY_PORT;
}

void name_list_parse(struct name_list *list, const char *variable, const char *text,
                     bool has_ports) {
  *list = (struct name_list){ 0 };
  if (!text) {
    return;
  }
  list->is_excluding = *text == '^';
  text += list->is_excluding;
  list->is_exact = *text == '=';
  text += list->is_exact;
  while (*text) {
    size_t length = strcspn(text, ",");
    add(list, variable, text, length, has_ports);
    text += length + (text[length] == ',');
  }
}

bool name_list_has(const struct name_list *list, const char *name, int port) {
  bool is_named = list->count == 0; /* and so ^ alone has none */
  for (unsigned i = 0; i < list->count && !is_named; i++) {
    const char *wanted = list->entries[i].name;
    int on = list->entries[i].port;
    bool has_name = list->is_exact ? !strcmp(name, wanted) : !strncmp(name, wanted, strlen(wanted));
    is_named = has_name && (on == NAME_LIST_ANY_PORT || port == NAME_LIST_ANY_PORT || on == port);
  }
  return is_named != list->is_excluding;
}

sa_family_t name_list_family(const char *variable, const char *text) {
  if (!text) {
    return AF_UNSPEC;
  }
  if (!strcmp(text, "AF_INET")) {
    return AF_INET;
  }
  if (!strcmp(text, "AF_INET6")) {
    return AF_INET6;
  }
  LOG_WARN("%s=%s is ignored: accepted is AF_INET or AF_INET6", variable, text);
  return AF_UNSPEC;
}
