/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-run: runs a job with both plugins. Without --check it becomes the job. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/check_event.h"
#include "common/cli.h"
#include "common/launcher.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/plugin_file.h"
#include "common/tools/checked_job.h"
#include "common/tools/job_settings.h"
#include "common/tools/one_voice.h"
#include "common/version.h"

/* As env(1) and shells have them. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

static bool is_check, goes_on;

/* What the job gets that the user has not set. False, and nothing, if what the user has set keeps
 * NCCL from using stratus. NCCL reads its files itself, on each host: of these nothing is set. */
static bool set_variables(const char *directory, char why_not[PLUGIN_WHY_MAX]) {
  struct job_settings settings;
  if (nccl_conf_load(NULL, nccl_version_installed) != 0) {
    snprintf(why_not, PLUGIN_WHY_MAX, "out of memory");
    return false;
  }
  job_settings_make(directory, &settings);
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings.settings[i];
    if (setting->value && setenv(setting->name, setting->value, 1) != 0) {
      cli_fail("%s: %s", setting->name, strerror(errno));
    }
  }
  if (settings.why_not_net) {
    snprintf(why_not, PLUGIN_WHY_MAX, "%s", settings.why_not_net);
    return false;
  }
  if (settings.doubt) {
    cli_fail("the job may run without stratus: %s", settings.doubt);
  }
  if (settings.why_not_tuner) {
    cli_fail("the job runs without the tuner of stratus: %s", settings.why_not_tuner);
  }
  return true;
}

/* ---- the command line ---- */

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

/* The words of `command`, with options that pass the variables of the job on to other hosts, of
 * those that are set: srun and MPICH's mpirun pass on the whole environment, torchrun runs on this
 * host; Open MPI's mpirun passes on what -x names, stratus-coll --hosts what --env gives. A command
 * that is not known stays as it is, as do options of its own. The result is the process's until it
 * ends. */
static char **pass_on(char **command) {
  static const char *const variables[] = { "LD_LIBRARY_PATH", "NCCL_NET_PLUGIN",
                                           "NCCL_TUNER_PLUGIN", "NCCL_NET_PLUGIN_REF_COUNT",
                                           CHECK_VARIABLE };
  const size_t variable_count = sizeof variables / sizeof variables[0];
  const char *slash = strrchr(command[0], '/'), *program = slash ? slash + 1 : command[0];
  const char *option = launcher_is_open_mpi(command[0])                               ? "-x"
                       : strcmp(program, "stratus-coll") == 0 && is_launcher(command) ? "--env"
                                                                                      : NULL;
  size_t words = 0;
  while (command[words]) {
    words++;
  }
  if (!option) {
    return command;
  }
  char **all = calloc(words + 2 * variable_count + 1, sizeof *all);
  if (!all) {
    cli_fail("out of memory: %s does not pass the variables on to other hosts", program);
    return command;
  }
  size_t count = 0;
  all[count++] = command[0];
  for (size_t i = 0; i < variable_count; i++) {
    /* The name alone: everybody can read command lines, and a token is among the values. */
    if (getenv(variables[i]) && !is_passed_on(command, option, variables[i])) {
      all[count++] = (char *)(uintptr_t)option;
      all[count++] = (char *)(uintptr_t)variables[i];
    }
  }
  memcpy(all + count, command + 1, (words - 1) * sizeof *all);
  return all;
}

static int become(char **command) {
  char **words = pass_on(command);
  execvp(words[0], words);
  int error = errno;
  cli_fail("%s: %s", words[0], strerror(error));
  return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

/* Behind a launcher all ranks of a host come to the same. */
static void tell_check_failed(const char *why_not) {
  char host[CHECK_HOST_MAX] = "", error[256];
  struct launcher_place place;
  gethostname(host, sizeof host - 1);
  bool is_rank = launcher_find(&place, error, sizeof error) == 1 && place.size > 1;
  if (!is_rank || one_voice_take(&place)) {
    cli_fail("check failed: host %s does not use stratus: %s", host, why_not);
  }
  if (!goes_on) {
    one_voice_hold();
  }
}

/* False: the job must not run. */
static bool tell_why_not(const char *why_not, bool is_checker) {
  if (!is_checker) {
    cli_fail("the job runs without stratus: %s", why_not);
    check_event_send(CHECK_NOT_HERE, why_not);
    return true;
  }
  tell_check_failed(why_not);
  return goes_on;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  arguments[argument_count] = NULL;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  /* Behind a launcher that runs under another stratus-run --check, that one is told. */
  bool is_checker = is_check && !getenv(CHECK_VARIABLE);
  bool is_usable = plugin_file_find_ours(directory, why_not) &&
                   plugin_file_load_ours(directory, why_not) && set_variables(directory, why_not);
  if (!is_usable && !tell_why_not(why_not, is_checker)) {
    return CHECKED_FAILED;
  }
  if (!is_checker) {
    return become(arguments);
  }
  int status = checked_job_run(arguments, pass_on, goes_on);
  return is_usable ? status : CHECKED_FAILED;
}

static const struct cli_option options[] = {
  { .name = "check",
    .type = CLI_FLAG,
    .value = &is_check,
    .help = "end the job with status 3 if a rank does not use stratus, and name its host" },
  { .name = "keep-going",
    .type = CLI_FLAG,
    .value = &goes_on,
    .help = "with --check: let such a job run to its end, then exit with status 3" },
  { 0 },
};

static const struct cli_program program = {
  .command = { .name = "stratus-run",
               .summary = "Runs COMMAND with both plugins of stratus. The user's NCCL_* settings "
                          "are never changed.",
               .arguments = "COMMAND...",
               .min_arguments = 1,
               .max_arguments = -1,
               .example = "stratus-run --check torchrun --nproc-per-node 8 train.py",
               .options = options,
               .run = run },
  .version = STRATUS_VERSION,
  .exit_status =
      "2 wrong use, 3 --check found a host without stratus, 4 --check: COMMAND succeeded, but "
      "NCCL was not used, 126 COMMAND cannot be run, 127 there is no COMMAND; else COMMAND's",
  .ends_at_operand = true,
};

int main(int argc, char **argv) {
  return cli_program(&program, argc, argv);
}
