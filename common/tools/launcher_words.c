/* SPDX-License-Identifier: Apache-2.0 */
/* See launcher_words.h. */
#include "common/tools/launcher_words.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/launcher.h"

/* As the user may have written it: the option, then NAME or NAME=value. */
static bool is_passed_on(char **command, const char *option, const char *name) {
  size_t length = strlen(name);
  for (char **word = command; word[0] && word[1]; word++) {
    if (strcmp(word[0], option) == 0 && strncmp(word[1], name, length) == 0 &&
        (word[1][length] == '\0' || word[1][length] == '=')) {
      return true;
    }
  }
  return false;
}

/* As a rank of another launcher it has the variables already, and takes no --env. */
static bool is_launcher(char **coll_command) {
  static const char option[] = "--hosts";
  for (char **word = coll_command; *word; word++) {
    size_t length = strcspn(*word, "=");
    if (length == sizeof option - 1 && strncmp(*word, option, length) == 0) {
      return true;
    }
  }
  return false;
}

static size_t count_of(const char *const *words) {
  size_t count = 0;
  while (words[count]) {
    count++;
  }
  return count;
}

char **launcher_words(char **command, const char *const *variables) {
  const char *slash = strrchr(command[0], '/'), *program = slash ? slash + 1 : command[0];
  const char *option = launcher_is_open_mpi(command[0])                               ? "-x"
                       : strcmp(program, "stratus-coll") == 0 && is_launcher(command) ? "--env"
                                                                                      : NULL;
  size_t words = count_of((const char *const *)command), most = words + 2 * count_of(variables);
  if (!option) {
    return command;
  }
  char **all = calloc(most + 1, sizeof *all);
  if (!all) {
    cli_fail("out of memory: %s does not pass the variables on to other hosts", program);
    return command;
  }
  size_t count = 0;
  all[count++] = command[0];
  for (const char *const *name = variables; *name; name++) {
    /* The name alone: everybody can read command lines, and a token is among the values. */
    if (getenv(*name) && !is_passed_on(command, option, *name)) {
      all[count++] = (char *)(uintptr_t)option;
      all[count++] = (char *)(uintptr_t)*name;
    }
  }
  memcpy(all + count, command + 1, (words - 1) * sizeof *all);
  return all;
}
