/* SPDX-License-Identifier: Apache-2.0 */
/* stratus run: sets what makes NCCL load both plugins, and becomes the job. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/plugin_file.h"
#include "common/tools/commands.h"
#include "common/tools/job_settings.h"
#include "common/tools/launch_agent.h"

/* As env(1) and shells have them. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

static bool is_strict, is_override;

/* For ranks on other hosts. srun and MPICH's mpirun pass on the whole environment, torchrun runs on
 * this host. */
static void set_launch_agent(const struct job_settings *settings, const char *directory,
                             char *const *command) {
  const char *names[JOB_VARIABLE_COUNT], *word = launch_agent_overruled(command);
  char why_not[LAUNCH_AGENT_WHY_MAX];
  size_t count = 0;
  for (int i = JOB_NET_PLUGIN; i < JOB_VARIABLE_COUNT; i++) {
    if (i <= JOB_NET || settings->settings[i].value) {
      names[count++] = settings->settings[i].name;
    }
  }
  if (!launch_agent_set(names, count, settings->needs_library_path ? directory : NULL, why_not)) {
    cli_say("the job may run without stratus on other hosts: %s", why_not);
  }
  if (word) {
    cli_say("the job may run without stratus on other hosts: %s counts more than %s of the "
            "environment, which has the variables: put its words before yours",
            word, "OMPI_MCA_orte_launch_agent or PRTE_MCA_prte_launch_agent");
  }
}

/* What the job gets that the user has not set. False, and nothing, if what the user has set keeps
 * NCCL from using stratus. NCCL reads its files itself, on each host: of these nothing is set. */
static bool set_variables(const struct job_request *request, char *const *command) {
  struct job_settings settings;
  if (nccl_conf_load(NULL, nccl_version_installed) != 0) {
    cli_fail("out of memory");
    return false;
  }
  job_settings_make(request, &settings);
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings.settings[i];
    if (setting->value && setenv(setting->name, setting->value, 1) != 0) {
      cli_say("%s: %s", setting->name, strerror(errno));
    }
  }
  job_settings_tell(&settings, is_override                           ? "--override overrules"
                               : is_strict && settings.is_obstructed ? "the job does not run"
                                                                     : NULL);
  if (settings.is_obstructed) {
    return false;
  }
  set_launch_agent(&settings, request->directory, command);
  return true;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  arguments[argument_count] = NULL;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  struct job_request request = { .directory = directory,
                                 .program = arguments[0],
                                 .is_override = is_override,
                                 .is_strict = is_strict };
  bool is_found = plugin_file_find_ours(directory, why_not);
  request.is_known = is_found && plugin_file_is_known_to_loader(directory);
  bool is_loaded = is_found && plugin_file_load_ours(directory, why_not);
  if (!is_loaded) {
    cli_say(is_strict ? "the job does not run: %s" : "the job runs without stratus: %s", why_not);
  }
  bool is_usable = is_loaded && set_variables(&request, arguments);
  if (is_strict && !is_usable) {
    return CLI_FAILED;
  }
  execvp(arguments[0], arguments);
  int error = errno;
  cli_fail("%s: %s", arguments[0], strerror(error));
  return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static const struct cli_option options[] = {
  { .name = "strict",
    .type = CLI_FLAG,
    .value = &is_strict,
    .help = "set NCCL_NET, so that NCCL ends a rank that does not get stratus; without it here, do "
            "not run COMMAND" },
  { .name = "override",
    .type = CLI_FLAG,
    .value = &is_override,
    .help = "use stratus also where the image or the user has set otherwise, and say what that "
            "overrules" },
  { 0 },
};

const struct cli_command command_run = {
  .name = "run",
  .summary =
      "run COMMAND with both plugins; the user's NCCL_* are never changed without --override",
  .arguments = "COMMAND...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "stratus run --strict torchrun --nproc-per-node 8 train.py",
  .options = options,
  .run = run,
  .exit_status = "1 --strict: stratus cannot be used here, 2 wrong use, 126 COMMAND cannot be run, "
                 "127 there is no COMMAND; else COMMAND's",
  .ends_at_operand = true,
};
