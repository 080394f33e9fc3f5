/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-run: runs a job with both plugins. Without --check it becomes the job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/tools/job_settings.h"
#include "common/tools/launcher_words.h"
#include "common/tools/plugin_place.h"
#include "common/version.h"

/* As env(1) and shells have them. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

/* What the job gets that the user has not set; why stratus will not be used is said. */
static void set_variables(const char *directory) {
  struct job_settings settings;
  job_settings_make(directory, &settings);
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings.settings[i];
    if (setting->value && setenv(setting->name, setting->value, 1) != 0) {
      cli_fail("%s: %s", setting->name, strerror(errno));
    }
  }
  if (settings.why_not_net) {
    cli_fail("the job runs without stratus: %s, and the user's settings count",
             settings.why_not_net);
  } else if (settings.why_not_tuner) {
    cli_fail("the job runs without the tuner of stratus: %s, and the user's settings count",
             settings.why_not_tuner);
  }
}

static int become(char **command) {
  static const char *const passed_on[] = { "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN",
                                           "NCCL_TUNER_PLUGIN", "NCCL_NET_PLUGIN_REF_COUNT", NULL };
  char **words = launcher_words(command, passed_on);
  execvp(words[0], words);
  int error = errno;
  cli_fail("%s: %s", words[0], strerror(error));
  return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  arguments[argument_count] = NULL;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  if (plugin_place_find(directory, why_not) && plugin_place_load(directory, why_not)) {
    set_variables(directory);
  } else {
    cli_fail("the job runs without stratus: %s", why_not);
  }
  return become(arguments);
}

static const struct cli_program program = {
  .command = { .name = "stratus-run",
               .summary = "Runs COMMAND with both plugins of stratus. The user's NCCL_* settings "
                          "are never changed.",
               .arguments = "COMMAND...",
               .min_arguments = 1,
               .max_arguments = -1,
               .example = "stratus-run torchrun --nproc-per-node 8 train.py",
               .run = run },
  .version = STRATUS_VERSION,
  .exit_status = "2 wrong use, 126 COMMAND cannot be run, 127 there is no COMMAND; else COMMAND's",
  .ends_at_operand = true,
};

int main(int argc, char **argv) {
  return cli_program(&program, argc, argv);
}
