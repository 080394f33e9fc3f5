/* SPDX-License-Identifier: Apache-2.0 */
/* See launch_agent.h. */
#include "common/tools/launch_agent.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tools/program_path.h"

static const struct agent {
  const char *variable; /* counts more than a file */
  const char *key;      /* in a file */
  const char *daemon;   /* what is run where nothing else is said */
  const char *own_file; /* below the user's home */
  const char *file;     /* of the installation */
} agents[] = {
  { "OMPI_MCA_orte_launch_agent", "orte_launch_agent", "orted", ".openmpi/mca-params.conf",
    "openmpi-mca-params.conf" },
  { "PRTE_MCA_prte_launch_agent", "prte_launch_agent", "prted", ".prte/mca-params.conf",
    "prte-mca-params.conf" },
};

/* ---- what the user has ---- */

/* The last line that sets the key counts. The text is the caller's; NULL: none does. */
static char *read_key(const char *path, const char *key) {
  FILE *file = fopen(path, "re");
  char *line = NULL, *value = NULL;
  size_t size = 0;
  while (file && getline(&line, &size, file) >= 0) {
    char name[64], rest[1024];
    if (sscanf(line, " %63[^#= \t\n] = %1023[^\n]", name, rest) == 2 && strcmp(name, key) == 0) {
      free(value);
      value = strdup(rest);
    }
  }
  free(line);
  if (file) {
    fclose(file);
  }
  return value;
}

/* Of the installation that PATH leads to; "" if there is none. */
static void find_prefix(char prefix[PATH_MAX]) {
  char path[PATH_MAX];
  if (!program_path_find("mpirun", path) || !realpath(path, prefix)) {
    prefix[0] = '\0';
  }
  program_path_to_prefix(prefix);
}

static char *read_files(const struct agent *agent) {
  char prefix[PATH_MAX], paths[4][PATH_MAX + 64];
  const char *home = getenv("HOME");
  find_prefix(prefix);
  snprintf(paths[0], sizeof paths[0], "%s/%s", home ? home : "", agent->own_file);
  snprintf(paths[1], sizeof paths[1], "%s/etc/%s", prefix, agent->file);
  snprintf(paths[2], sizeof paths[2], "/etc/openmpi/%s", agent->file);
  snprintf(paths[3], sizeof paths[3], "/etc/%s", agent->file);
  char *value = NULL;
  for (size_t i = 0; i < sizeof paths / sizeof paths[0] && !value; i++) {
    value = read_key(paths[i], agent->key);
  }
  return value;
}

/* ---- ours ---- */

/* A shell of the other host reads it, and Open MPI parts it at blanks: nothing is quoted. */
static bool is_plain(const char *text) {
  return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "_./:+,=@%-")] == '\0';
}

/* Open MPI takes it for granted that the user has one shell on all hosts
 * (plm_rsh_assume_same_shell). A resource manager's own launcher has no shell, and gives daemons
 * the whole environment. */
static bool is_read_by_sh(void) {
  static const char *const managers[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID" };
  for (size_t i = 0; i < sizeof managers / sizeof managers[0]; i++) {
    if (getenv(managers[i])) {
      return false;
    }
  }
  const struct passwd *user = getpwuid(getuid());
  const char *shell = user ? strrchr(user->pw_shell, '/') : NULL;
  return shell && !strstr(shell, "csh") && !strstr(shell, "fish");
}

static bool add_words(FILE *out, const char *const *names, size_t count, const char *directory,
                      char why_not[LAUNCH_AGENT_WHY_MAX]) {
  const char *left_out = NULL;
  fputs("env", out);
  for (size_t i = 0; i < count; i++) {
    const char *value = getenv(names[i]);
    if (value && is_plain(value)) {
      fprintf(out, " %s=%s", names[i], value);
    } else if (value) {
      left_out = names[i];
    }
  }
  if (directory && is_plain(directory) && is_read_by_sh()) {
    fprintf(out, " LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", directory);
  } else if (directory && !is_plain(directory)) {
    left_out = "LD_LIBRARY_PATH";
  }
  if (left_out) {
    snprintf(why_not, LAUNCH_AGENT_WHY_MAX,
             "%s has a blank or a sign that shells read, so mpirun does not pass it on to other "
             "hosts; install stratus at a path without one",
             left_out);
  }
  return !left_out;
}

bool launch_agent_set(const char *const *names, size_t count, const char *directory,
                      char why_not[LAUNCH_AGENT_WHY_MAX]) {
  char *words = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&words, &bytes);
  snprintf(why_not, LAUNCH_AGENT_WHY_MAX, "out of memory");
  if (!out) {
    return false;
  }
  bool is_whole = add_words(out, names, count, directory, why_not);
  fclose(out);
  for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
    const char *set = getenv(agents[i].variable);
    char *of_file = set ? NULL : read_files(&agents[i]), *value;
    const char *theirs = set ? set : of_file ? of_file : agents[i].daemon;
    /* Within a job that was started so the words are there already. */
    if (!strstr(theirs, words) && asprintf(&value, "%s %s", words, theirs) >= 0) {
      is_whole = setenv(agents[i].variable, value, 1) == 0 && is_whole;
      free(value);
    }
    free(of_file);
  }
  free(words);
  return is_whole;
}

const char *launch_agent_overruled(char *const *command) {
  for (; *command; command++) {
    if (strstr(*command, "launch-agent") || strstr(*command, "launch_agent")) {
      return *command;
    }
  }
  return NULL;
}
