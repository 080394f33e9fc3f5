/* SPDX-License-Identifier: Apache-2.0 */
/* See host_command.h. Only ssh has a shell in between. */
#include "common/host_command.h"

#include <stdlib.h>
#include <string.h>

/* 'word', with each ' in it as '\'' */
static char *quote_for_shell(const char *word) {
  char *quoted = malloc(4 * strlen(word) + 3), *to = quoted;
  if (!quoted) {
    return NULL;
  }
  *to++ = '\'';
  for (; *word; word++) {
    if (*word == '\'') {
      to = stpcpy(to, "'\\''");
    } else {
      *to++ = *word;
    }
  }
  strcpy(to, "'");
  return quoted;
}

/* Takes the word over; NULL: out of memory. */
static void take(struct host_command *command, char *word) {
  if (!word || command->count == HOST_COMMAND_WORDS_MAX) {
    command->has_failed = true;
    free(word);
    return;
  }
  command->words[command->count++] = word;
}

static void add_split(struct host_command *command, const char *text) {
  for (size_t length; *(text += strspn(text, " \t")); text += length) {
    length = strcspn(text, " \t");
    take(command, strndup(text, length));
  }
}

void host_command_begin(struct host_command *command, const struct host *host, const char *ssh) {
  *command = (struct host_command){ 0 };
  switch (host->kind) {
  case HOST_LOCAL:
    break;
  case HOST_COMMAND:
    add_split(command, host->name);
    break;
  case HOST_NAMESPACE:
    add_split(command, "ip netns exec");
    take(command, strdup(host->name));
    break;
  case HOST_SSH:
    add_split(command, ssh);
    take(command, strdup(host->name));
    command->is_for_shell = true;
    break;
  }
}

void host_command_add(struct host_command *command, const char *word) {
  take(command, command->is_for_shell ? quote_for_shell(word) : strdup(word));
}

void host_command_free(struct host_command *command) {
  for (int i = 0; i < command->count; i++) {
    free(command->words[i]);
  }
  *command = (struct host_command){ 0 };
}
