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
#include "common/tools/launch_agent.h"
#include "common/tools/one_voice.h"
#include "common/version.h"

/* As env(1) and shells have them. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

static bool is_check, goes_on, is_override;
static bool needs_library_path; /* the job's hosts do, as job_settings has it */

/* To other hosts; stratus-coll --hosts and prun pass on themselves (pass_on). */
static void set_launch_agent(const struct job_settings *settings, const char *directory,
                             char *const *command) {
  const char *names[JOB_VARIABLE_COUNT], *word = launch_agent_overruled(command);
  char why_not[LAUNCH_AGENT_WHY_MAX];
  size_t count = 0;
  for (int i = JOB_NET_PLUGIN; i < JOB_VARIABLE_COUNT; i++) {
    if (i <= JOB_REF_COUNT || settings->settings[i].value) {
      names[count++] = settings->settings[i].name;
    }
  }
  if (!launch_agent_set(names, count, settings->needs_library_path ? directory : NULL, why_not)) {
    cli_fail("the job may run without stratus on other hosts: %s", why_not);
  }
  if (word) {
    cli_fail("the job may run without stratus on other hosts: %s counts more than %s of the "
             "environment, which has the variables: put its words before yours",
             word, "OMPI_MCA_orte_launch_agent or PRTE_MCA_prte_launch_agent");
  }
}

static void tell(const struct job_settings *settings) {
  for (int i = 0; i < JOB_OBSTACLES_MAX && settings->obstacles[i]; i++) {
    cli_fail(is_override ? "--override overrules: %s" : "the job runs without stratus: %s",
             settings->obstacles[i]);
  }
  if (settings->obstacles[0] && !is_override) {
    return;
  }
  for (int i = 0; i < JOB_DOUBTS_MAX && settings->doubts[i]; i++) {
    cli_fail(settings->settings[JOB_SOCKET_IFNAME].value ? "--override overrules: %s"
                                                         : "the job may run without stratus: %s",
             settings->doubts[i]);
  }
  if (settings->why_not_tuner) {
    cli_fail(is_override ? "--override overrules: %s"
                         : "the job runs without the tuner of stratus: %s",
             settings->why_not_tuner);
  }
}

/* What the job gets that the user has not set. False, and nothing, if what the user has set keeps
 * NCCL from using stratus. NCCL reads its files itself, on each host: of these nothing is set. */
static bool set_variables(const struct job_request *request, char *const *command,
                          char why_not[PLUGIN_WHY_MAX]) {
  struct job_settings settings;
  if (nccl_conf_load(NULL, nccl_version_installed) != 0) {
    snprintf(why_not, PLUGIN_WHY_MAX, "out of memory");
    return false;
  }
  job_settings_make(request, &settings);
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings.settings[i];
    if (setting->value && setenv(setting->name, setting->value, 1) != 0) {
      cli_fail("%s: %s", setting->name, strerror(errno));
    }
  }
  tell(&settings);
  if (settings.obstacles[0] && !is_override) {
    snprintf(why_not, PLUGIN_WHY_MAX, "%s", settings.obstacles[0]);
    return false;
  }
  needs_library_path = settings.needs_library_path;
  set_launch_agent(&settings, request->directory, command);
  return true;
}

/* ---- the command line ---- */

/* As the user may have written it in this app context: the option, then NAME or NAME=value. */
static bool is_passed_on(char **command, const char *option, const char *name) {
  size_t length = strlen(name);
  for (char **word = command; word[0] && word[1] && strcmp(word[1], ":") != 0; word++) {
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

static const char *const variables[] = { "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                                         "NCCL_NET_PLUGIN_REF_COUNT", CHECK_VARIABLE,
                                         "LD_LIBRARY_PATH" };
enum { LAUNCH_AGENT_VARIABLES = 3, VARIABLES = 5 };

/* The option that passes a variable on, and the first and last of `variables` that need it. srun
 * and MPICH's mpirun pass on the whole environment, torchrun runs on this host; the daemons of Open
 * MPI and PRRTE get all but the token of a check, which is for no command line (launch_agent.h),
 * but those of prun run already. stratus-coll --hosts passes on what --env gives. NULL: nothing
 * does. */
static const char *option_of(char **command, size_t *first, size_t *end) {
  const char *slash = strrchr(command[0], '/'), *program = slash ? slash + 1 : command[0];
  *first = 0;
  *end = needs_library_path ? VARIABLES : VARIABLES - 1; /* LD_LIBRARY_PATH is the last */
  if (strcmp(program, "stratus-coll") == 0 && is_launcher(command)) {
    return "--env";
  }
  if (strcmp(program, "prun") == 0) {
    return "-x";
  }
  *first = LAUNCH_AGENT_VARIABLES;
  *end = LAUNCH_AGENT_VARIABLES + 1;
  return getenv(CHECK_VARIABLE) && launcher_is_open_mpi(command[0]) ? "-x" : NULL;
}

/* The words of `command`, with options that pass the variables of the job on to other hosts, of
 * those that are set, in each app context: a ":" begins one. A command that is not known stays as
 * it is, as do options of its own. The result is the process's until it ends. */
static char **pass_on(char **command) {
  size_t words = 0, contexts = 1, count = 0, first, end;
  const char *option = option_of(command, &first, &end);
  for (; command[words]; words++) {
    contexts += strcmp(command[words], ":") == 0;
  }
  char **all = option ? calloc(words + 2 * VARIABLES * contexts + 1, sizeof *all) : NULL;
  if (!all) {
    return command;
  }
  for (size_t word = 0; word < words; word++) {
    all[count++] = command[word];
    bool begins = word == 0 || (strcmp(option, "-x") == 0 && strcmp(command[word], ":") == 0);
    for (size_t i = begins ? first : end; i < end; i++) {
      /* The name alone: everybody can read command lines, and a token is among the values. */
      if (getenv(variables[i]) && !is_passed_on(command + word, option, variables[i])) {
        all[count++] = (char *)(uintptr_t)option;
        all[count++] = (char *)(uintptr_t)variables[i];
      }
    }
  }
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
static bool go_on_without(const char *why_not, bool is_checker) {
  if (!is_checker) {
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
  struct job_request request = { directory, false, arguments[0], is_override };
  /* Behind a launcher that runs under another stratus-run --check, that one is told. */
  bool is_checker = is_check && !getenv(CHECK_VARIABLE);
  bool is_found = plugin_file_find_ours(directory, why_not);
  request.is_known = is_found && plugin_file_is_known_to_loader(directory);
  bool is_loaded = is_found && plugin_file_load_ours(directory, why_not);
  bool is_usable = is_loaded && set_variables(&request, arguments, why_not);
  if (!is_loaded && !is_checker) {
    cli_fail("the job runs without stratus: %s", why_not);
  }
  if (!is_usable && !go_on_without(why_not, is_checker)) {
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
  { .name = "override",
    .type = CLI_FLAG,
    .value = &is_override,
    .help = "use stratus also where the image or the user has set otherwise, and say what that "
            "overrules" },
  { 0 },
};

static const struct cli_program program = {
  .command = { .name = "stratus-run",
               .summary = "Runs COMMAND with both plugins of stratus. The user's NCCL_* settings "
                          "are never changed without --override.",
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
