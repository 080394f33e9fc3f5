/* SPDX-License-Identifier: Apache-2.0 */
/* stratus env: prints what loads the plugins, for shells, schedulers, containers and NCCL's
 * configuration file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/plugin_file.h"
#include "common/tools/commands.h"
#include "common/tools/job_settings.h"

enum form { FORM_BASH, FORM_DOCKER, FORM_ENV_FILE, FORM_CONF };
static int form = FORM_BASH;

/* In single quotes. A path that the shell has when it runs this goes on behind the plugins'. */
static void print_for_shell(const struct job_setting *setting, const char *directory) {
  bool is_path = strcmp(setting->name, "LD_LIBRARY_PATH") == 0;
  printf("export %s='", setting->name);
  for (const char *text = is_path ? directory : setting->value; *text; text++) {
    fputs(*text == '\'' ? "'\\'" : "", stdout);
    putchar(*text);
    fputs(*text == '\'' ? "'" : "", stdout);
  }
  puts(is_path ? "'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH};" : "';");
}

/* The image's own LD_LIBRARY_PATH must stay, so the plugins go where the loaders of Debian and of
 * Red Hat look by themselves. */
static int print_for_docker(const struct job_settings *settings, const char *directory) {
  static const char *const plugins[] = { PLUGIN_NET, PLUGIN_TUNER };
  static const char *const trusted[] = { "/usr/lib", "/usr/lib64" };
  if (strpbrk(directory, ": \t")) {
    return cli_fail("%s cannot be given to docker run in one word", directory);
  }
  for (int i = 0; i < 4; i++) {
    char file[PLUGIN_FILE_MAX], real[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", directory, plugins[i % 2]);
    printf("--volume=%s:%s/%s:ro ", realpath(file, real) ? real : file, trusted[i / 2],
           plugins[i % 2]);
  }
  for (int i = JOB_NET_PLUGIN; i < JOB_VARIABLE_COUNT; i++) {
    if (settings->settings[i].value) {
      printf("--env=%s=%s ", settings->settings[i].name, settings->settings[i].value);
    }
  }
  putchar('\n');
  return CLI_OK;
}

static void tell_old_releases(const char *directory) {
  cli_say("NCCL 2.19, 2.20 and 2.27.3 take no paths. For these, let the loader know %s\n(a file in "
          "/etc/ld.so.conf.d, then ldconfig) and print it again.",
          directory);
}

static int print_lines(const struct job_settings *settings, const char *directory) {
  if (form == FORM_CONF && settings->needs_library_path) {
    return cli_fail("%s cannot be given to NCCL as a path", directory);
  }
  for (int i = form == FORM_CONF ? JOB_NET_PLUGIN : 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings->settings[i];
    if (setting->value && form == FORM_BASH) {
      print_for_shell(setting, directory);
    } else if (setting->value) {
      printf("%s=%s\n", setting->name, setting->value);
    }
    if (form == FORM_CONF && i == JOB_NET_PLUGIN && setting->value && strchr(setting->value, '/')) {
      tell_old_releases(directory);
    }
  }
  return CLI_OK;
}

static int print_variables(const char *directory) {
  static struct job_settings settings; /* the process's, until it ends */
  /* In a container the loader will know them. */
  const struct job_request request = {
    .directory = directory,
    .is_known = form == FORM_DOCKER || plugin_file_is_known_to_loader(directory),
    .is_file = form == FORM_CONF,
  };
  job_settings_make(&request, &settings);
  job_settings_tell(&settings, NULL);
  return form == FORM_DOCKER ? print_for_docker(&settings, directory)
                             : print_lines(&settings, directory);
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX];
  if (!plugin_file_find_ours(directory, why_not)) {
    return cli_fail("%s", why_not);
  }
  /* A container has files of its own. */
  if (form != FORM_DOCKER && nccl_conf_load(NULL, nccl_version_installed) != 0) {
    return cli_fail("out of memory");
  }
  return print_variables(directory);
}

static const struct cli_option options[] = {
  { .name = "for",
    .letter = 'f',
    .type = CLI_WORD,
    .value = &form,
    .argument = "bash|docker|env-file|conf",
    .help = "what reads it: a shell, docker run, a file of NAME=value, or nccl.conf" },
  { 0 },
};

const struct cli_command command_env = {
  .name = "env",
  .summary = "print the variables with which a job uses stratus",
  .example = "eval \"$(stratus env)\"",
  .options = options,
  .run = run,
};
