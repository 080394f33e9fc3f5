/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune verify: whether all hosts of a job would choose alike. With the net plugin ranks
 * that differ are told at connect; where only the tuner is installed, nobody else looks. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/param.h"
#include "common/profile_match.h"
#include "common/version.h"
#include "tuner_plugin/tools/tune.h"

struct tune_verify_options tune_verify_options = { .tool = "stratus-tune" };

enum { HOSTS_MAX = 4096, AT_ONCE = 64, ANSWER_MAX = 16384, WORDS_MAX = 16 };

/* ---- this host ---- */

/* What decides, on one line, so that `srun stratus-tune verify --here | sort | uniq -c` does, too.
 */
static int tell_here(void) {
  struct profile profile;
  struct profile_error error = { 0 };
  char path[PROFILE_PATH_MAX], decisions[TUNE_HASH_TEXT_MAX], hash[TUNE_HASH_TEXT_MAX];
  int result = profile_match_load(&profile, path, &error);
  bool is_absent = result == -ENOENT && !param_is_set(PARAM_PROFILE);
  if (result < 0 && !is_absent) {
    char text[sizeof error];
    return cli_fail("%s", profile_error_format(&error, text, sizeof text));
  }
  uint64_t id = result == 0 ? profile_decision_hash(&profile) : 0;
  snprintf(decisions, sizeof decisions, "%016" PRIx64, id);
  json_t *told = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s}", "decisions", decisions,
                           "decision_version", PROFILE_DECISION_VERSION, "stratus", STRATUS_VERSION,
                           "profile", result == 0 ? profile.meta.id : "none", "hash",
                           result == 0 ? tune_format_hash(&profile, hash) : "none", "path",
                           result == 0 ? path : "");
  if (result == 0) {
    profile_free(&profile);
  }
  int status = told && json_dumpf(told, stdout, JSON_COMPACT) == 0 ? CLI_OK : CLI_FAILED;
  json_decref(told);
  putchar('\n');
  return status == CLI_OK && fflush(stdout) == 0 ? CLI_OK : cli_fail("cannot write");
}

/* ---- other hosts ---- */

struct answer {
  const char *host;
  pid_t child;
  int pipe;
  char text[ANSWER_MAX];
  size_t length;
  json_t *told; /* NULL: it did not answer */
};

/* For the shell of the other host. */
static char *quote(const char *text) {
  char *quoted = malloc(4 * strlen(text) + 3), *to = quoted;
  if (!quoted) {
    return NULL;
  }
  *to++ = '\'';
  for (; *text; text++) {
    if (*text == '\'') {
      to = stpcpy(to, "'\\''");
    } else {
      *to++ = *text;
    }
  }
  strcpy(to, "'");
  return quoted;
}

struct words {
  char *words[WORDS_MAX];
  int count;
};

static void add(struct words *words, const char *text, bool is_quoted) {
  if (words->count < WORDS_MAX - 1) {
    words->words[words->count++] = is_quoted ? quote(text) : strdup(text);
  }
}

/* How to run the tool there, with what the user has set here about profiles. */
static void make_command(const char *host, struct words *words) {
  static const char *const variables[] = { "STRATUS_PROFILE", "STRATUS_PROFILE_STRICT",
                                           "STRATUS_INSTANCE_TYPE" };
  bool is_remote = strcmp(host, "local") != 0 && strncmp(host, "ns:", 3) != 0;
  if (is_remote) {
    static const char *const ssh[] = { "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10" };
    for (size_t i = 0; i < sizeof ssh / sizeof ssh[0]; i++) {
      add(words, ssh[i], false);
    }
    add(words, host, false);
  } else if (strncmp(host, "ns:", 3) == 0) {
    add(words, "ip", false);
    add(words, "netns", false);
    add(words, "exec", false);
    add(words, host + 3, false);
  }
  add(words, "env", false);
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = getenv(variables[i]);
    if (value) {
      char text[PROFILE_PATH_MAX + 64];
      snprintf(text, sizeof text, "%s=%s", variables[i], value);
      add(words, text, is_remote);
    }
  }
  add(words, tune_verify_options.tool, is_remote);
  add(words, "verify", false);
  add(words, "--here", false);
}

static int ask(struct answer *answer) {
  struct words words = { 0 };
  int pipes[2];
  make_command(answer->host, &words);
  int status = pipe(pipes) == 0 ? CLI_OK : cli_fail("cannot make a pipe: %s", strerror(errno));
  if (status == CLI_OK) {
    fflush(stdout);
    answer->child = fork();
    if (answer->child == 0) {
      dup2(pipes[1], STDOUT_FILENO);
      close(pipes[0]);
      close(pipes[1]);
      execvp(words.words[0], words.words);
      fprintf(stderr, "stratus-tune: %s: %s\n", words.words[0], strerror(errno));
      _exit(127);
    }
    close(pipes[1]);
    answer->pipe = pipes[0];
  }
  for (int i = 0; i < words.count; i++) {
    free(words.words[i]);
  }
  return status;
}

static void hear(struct answer *answer) {
  int status = 0;
  ssize_t n = 1;
  while (n > 0 && answer->length < ANSWER_MAX - 1) {
    n = read(answer->pipe, answer->text + answer->length, ANSWER_MAX - 1 - answer->length);
    answer->length += n > 0 ? (size_t)n : 0;
  }
  close(answer->pipe);
  if (answer->child > 0) {
    waitpid(answer->child, &status, 0);
  }
  /* A login shell may have said something before. */
  const char *start = memchr(answer->text, '{', answer->length);
  if (start && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    answer->told = json_loadb(start, answer->length - (size_t)(start - answer->text),
                              JSON_DISABLE_EOF_CHECK, NULL);
  }
}

/* ---- all of them ---- */

static const char *text_of(const struct answer *answer, const char *name) {
  const char *text = json_string_value(json_object_get(answer->told, name));
  return text ? text : "";
}

static bool is_same(const struct answer *a, const struct answer *b) {
  return strcmp(text_of(a, "decisions"), text_of(b, "decisions")) == 0 &&
         json_equal(json_object_get(a->told, "decision_version"),
                    json_object_get(b->told, "decision_version"));
}

/* Compared with the first that answered. */
static const char *verdict_of(const struct answer *answers, int count, int place) {
  int first = 0;
  while (first < count && !answers[first].told) {
    first++;
  }
  if (!answers[place].told) {
    return "no answer";
  }
  return is_same(&answers[first], &answers[place]) ? "alike" : "differs";
}

static int print_answers(const struct answer *answers, int count, bool is_json) {
  json_t *list = json_array();
  bool is_good = true;
  for (int i = 0; i < count; i++) {
    const char *verdict = verdict_of(answers, count, i);
    is_good &= strcmp(verdict, "alike") == 0;
    if (!is_json) {
      printf("%-9s  %-24s  profile %s, hash %s, decisions %s\n", verdict, answers[i].host,
             text_of(&answers[i], "profile"), text_of(&answers[i], "hash"),
             text_of(&answers[i], "decisions"));
    }
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:s, s:s, s:s}", "host", answers[i].host, "verdict",
                                    verdict, "profile", text_of(&answers[i], "profile"), "hash",
                                    text_of(&answers[i], "hash"), "decisions",
                                    text_of(&answers[i], "decisions")));
  }
  int status = CLI_OK;
  if (is_json) {
    status = tune_print_json(json_pack("{s:b, s:O}", "alike", is_good, "hosts", list));
  } else {
    printf("%s\n", is_good
                       ? "all hosts choose alike"
                       : "a job on these hosts could hang: install the same profile and release");
  }
  json_decref(list);
  return is_good ? status : CLI_FAILED;
}

static bool is_host_name(const char *host) {
  if (host[0] == '-' || host[0] == '\0') {
    return false; /* an option of ssh */
  }
  for (; *host; host++) {
    if (!isalnum((unsigned char)*host) && !strchr("._-@:%", *host)) {
      return false;
    }
  }
  return true;
}

static int verify(char **hosts, int count, bool is_json) {
  struct answer *answers = calloc((unsigned)count, sizeof *answers);
  int status = answers ? CLI_OK : cli_fail("out of memory");
  for (int i = 0; i < count && status == CLI_OK; i += AT_ONCE) {
    int end = i + AT_ONCE < count ? i + AT_ONCE : count, asked = i;
    for (; asked < end && status == CLI_OK; asked++) {
      answers[asked].host = hosts[asked];
      status = ask(&answers[asked]);
    }
    for (int j = i; j < asked; j++) {
      hear(&answers[j]);
    }
  }
  status = status == CLI_OK ? print_answers(answers, count, is_json) : status;
  for (int i = 0; answers && i < count; i++) {
    json_decref(answers[i].told);
  }
  free(answers);
  return status;
}

int tune_verify(int argument_count, char **arguments, bool is_json) {
  if (tune_verify_options.is_here != (argument_count == 0)) {
    cli_fail("verify: give the HOSTs of the job, or --here");
    return CLI_USAGE;
  }
  if (tune_verify_options.is_here) {
    return tell_here();
  }
  if (argument_count > HOSTS_MAX) {
    cli_fail("verify: at most %d hosts", HOSTS_MAX);
    return CLI_USAGE;
  }
  for (int i = 0; i < argument_count; i++) {
    if (!is_host_name(arguments[i])) {
      cli_fail("verify: \"%s\" is no host: give what ssh takes, local, or ns:NAME for a network "
               "namespace",
               arguments[i]);
      return CLI_USAGE;
    }
  }
  return verify(arguments, argument_count, is_json);
}
