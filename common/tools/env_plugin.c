/* SPDX-License-Identifier: Apache-2.0 */
/* See env_plugin.h. */
#include "common/tools/env_plugin.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/nccl_version.h"
#include "common/plugin_file.h"
#include "common/tools/limits.h"

enum { FIRST_RELEASE = 22807 };

typedef void logger_fn(int level, unsigned long flags, const char *file, int line,
                       const char *format, ...);

/* v1 and v2 differ in the logger alone, which v1 does not read (src/include/plugin/env/). */
struct plugin_table {
  const char *name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, logger_fn *logger);
  int (*finalize)(void);
  const char *(*getEnv)(const char *name);
};

static void log_nothing(int level, unsigned long flags, const char *file, int line,
                        const char *format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static void *open_plugin(const char *plugin) {
  char file[PATH_MAX];
  void *library = dlopen(plugin ? plugin : "libnccl-env.so", RTLD_NOW | RTLD_LOCAL);
  if (!library && plugin && !strchr(plugin, '/')) {
    snprintf(file, sizeof file, "libnccl-env-%s.so", plugin);
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

/* In the process that asks: writes the answer. */
static void ask(const char *plugin, const char *name, const char *value, int output) {
  struct env_plugin_answer answer = { "", "" };
  void *library = open_plugin(plugin);
  const struct plugin_table *table = library ? dlsym(library, "ncclEnvPlugin_v2") : NULL;
  table = table || !library ? table : dlsym(library, "ncclEnvPlugin_v1");
  int release = table ? nccl_version_installed() : 0;
  release = release > 0 ? release : FIRST_RELEASE;
  if (!table || release < FIRST_RELEASE || nccl_conf_apply(nccl_version_installed) != 0 ||
      (value && setenv(name, value, 1) != 0)) {
    return;
  }
  if (table->init((uint8_t)(release / 10000), (uint8_t)(release / 100 % 100),
                  (uint8_t)(release % 100), "", log_nothing) != 0) {
    return;
  }
  const char *text = table->getEnv(name);
  snprintf(answer.file, sizeof answer.file, "%s", plugin_file_path(library));
  snprintf(answer.value, sizeof answer.value, "%s", text ? text : "");
  ssize_t ignored = write(output, &answer, sizeof answer);
  (void)ignored;
}

/* False: there is no answer. */
static bool wait_for(int input, pid_t child, struct env_plugin_answer *answer) {
  struct pollfd waiting = { .fd = input, .events = POLLIN };
  size_t used = 0;
  ssize_t bytes = 1;
  while (used < sizeof *answer && bytes > 0 && poll(&waiting, 1, ENV_PLUGIN_ANSWER_MS) == 1) {
    bytes = read(input, (char *)answer + used, sizeof *answer - used);
    used += bytes > 0 ? (size_t)bytes : 0;
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return used == sizeof *answer;
}

bool env_plugin_changes(const char *plugin, const char *name, const char *value,
                        struct env_plugin_answer *answer) {
  int ends[2], release = nccl_version_installed();
  bool is_asked =
      (release == 0 || release >= FIRST_RELEASE) && !(plugin && strcasecmp(plugin, "none") == 0);
  if (!is_asked || pipe(ends) != 0) {
    return false;
  }
  pid_t child = fork();
  if (child == 0) {
    /* What it says is no answer, and may be anything. */
    bool is_quiet = freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
    if (is_quiet) {
      ask(plugin, name, value, ends[1]);
    }
    _exit(0);
  }
  close(ends[1]);
  bool is_answered = child > 0 && wait_for(ends[0], child, answer);
  close(ends[0]);
  const char *slash = is_answered ? strrchr(answer->file, '/') : NULL;
  return is_answered && strcmp(slash ? slash + 1 : answer->file, PLUGIN_NET) != 0 &&
         strcmp(answer->value, value ? value : "") != 0;
}
