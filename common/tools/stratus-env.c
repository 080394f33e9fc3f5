/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-env: prints what loads the plugins for shells, schedulers and containers, or writes it to
 * NCCL's configuration file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/tools/job_settings.h"
#include "common/tools/nccl_conf.h"
#include "common/tools/plugin_place.h"
#include "common/version.h"

enum form { FORM_BASH, FORM_FISH, FORM_SLURM, FORM_DOCKER, FORM_ENV_FILE };
static int form = FORM_BASH;
static bool is_write, is_remove, is_override;

/* ---- variables ---- */

/* In single quotes, as bash and fish read it; they differ in how a quote itself is written. */
static void print_quoted(const char *text, bool is_fish) {
  putchar('\'');
  for (; *text; text++) {
    if (*text == '\'') {
      fputs(is_fish ? "\\'" : "'\\''", stdout);
    } else if (*text == '\\' && is_fish) {
      fputs("\\\\", stdout);
    } else {
      putchar(*text);
    }
  }
  putchar('\'');
}

/* A path that the shell has when it runs this goes on behind the plugins' directory. */
static void print_for_shell(const struct job_setting *setting, const char *directory) {
  bool is_path = strcmp(setting->name, "LD_LIBRARY_PATH") == 0, is_fish = form == FORM_FISH;
  printf(is_fish ? "set -gx %s%s " : "export %s%s=", is_fish && is_path ? "--path " : "",
         setting->name);
  print_quoted(is_path ? directory : setting->value, is_fish);
  puts(!is_path  ? is_fish ? "" : ";"
       : is_fish ? " $LD_LIBRARY_PATH"
                 : "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH};");
}

static int print_for_slurm(const struct job_settings *settings) {
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const char *value = settings->settings[i].value;
    if (value && strpbrk(value, ", \t'\"")) {
      return cli_fail("%s=%s cannot be given to --export, which ends values at commas and blanks",
                      settings->settings[i].name, value);
    }
  }
  fputs("--export=ALL", stdout);
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    if (settings->settings[i].value) {
      printf(",%s=%s", settings->settings[i].name, settings->settings[i].value);
    }
  }
  putchar('\n');
  return CLI_OK;
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
    char file[PATH_MAX + 128], real[PATH_MAX];
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

static void print_lines(const struct job_settings *settings, const char *directory) {
  for (int i = 0; i < JOB_VARIABLE_COUNT; i++) {
    const struct job_setting *setting = &settings->settings[i];
    if (setting->value && form == FORM_ENV_FILE) {
      printf("%s=%s\n", setting->name, setting->value);
    } else if (setting->value) {
      print_for_shell(setting, directory);
    }
  }
}

static int print_variables(const char *directory) {
  static struct job_settings settings; /* the process's, until it ends */
  job_settings_make(directory, &settings);
  if (settings.why_not_net) {
    cli_fail("jobs will run without stratus: %s, and the user's settings count",
             settings.why_not_net);
  } else if (settings.why_not_tuner) {
    cli_fail("jobs will run without the tuner of stratus: %s, and the user's settings count",
             settings.why_not_tuner);
  }
  if (form == FORM_SLURM) {
    return print_for_slurm(&settings);
  }
  if (form == FORM_DOCKER) {
    return print_for_docker(&settings, directory);
  }
  print_lines(&settings, directory);
  return CLI_OK;
}

/* ---- the configuration file ---- */

static int choose_file(int argument_count, char **arguments, char path[PATH_MAX]) {
  if (argument_count == 1) {
    snprintf(path, PATH_MAX, "%s", arguments[0]);
  } else if (geteuid() == 0) {
    snprintf(path, PATH_MAX, "/etc/nccl.conf");
  } else if (!nccl_conf_user_file(path)) {
    return cli_fail("the user database has no home for you: name the FILE");
  }
  return CLI_OK;
}

static bool is_in_the_way(const char *path, const char *name) {
  char value[NCCL_CONF_VALUE_MAX];
  if (is_override || !nccl_conf_read(path, name, value) || !*value) {
    return false;
  }
  bool is_net = strcmp(name, "NCCL_NET_PLUGIN") == 0;
  if (is_net ? job_settings_is_stratus(value) : strstr(value, PLUGIN_TUNER) != NULL) {
    return false;
  }
  cli_fail(
      "%s has %s=%s: nothing was written; --override puts the lines of stratus before it, where "
      "they count",
      path, name, value);
  return true;
}

static int write_conf(const char *directory, const char *path) {
  char net[PATH_MAX + 128], tuner[PATH_MAX + 128], why_not[NCCL_CONF_WHY_MAX];
  bool is_known = plugin_place_is_known_to_loader(directory);
  snprintf(net, sizeof net, "%s/%s", directory, PLUGIN_NET);
  snprintf(tuner, sizeof tuner, "%s/%s", directory, PLUGIN_TUNER);
  const struct nccl_conf_line lines[] = {
    { "NCCL_NET_PLUGIN", is_known ? "stratus" : net },
    { "NCCL_TUNER_PLUGIN", is_known ? PLUGIN_TUNER : tuner },
    { "NCCL_NET_PLUGIN_REF_COUNT", "1" },
  };
  if (is_in_the_way(path, "NCCL_NET_PLUGIN") || is_in_the_way(path, "NCCL_TUNER_PLUGIN")) {
    return CLI_FAILED;
  }
  if (nccl_conf_write(path, lines, sizeof lines / sizeof lines[0], why_not) != 0) {
    return cli_fail("%s", why_not);
  }
  printf("%s: jobs that read it use stratus; stratus-env --remove-conf takes it back\n", path);
  if (!is_known) {
    printf(
        "NCCL 2.19, 2.20 and 2.27.3 take no paths, as it has now. For these, let the loader know "
        "%s\n(a file in /etc/ld.so.conf.d, then ldconfig) and write it again.\n",
        directory);
  }
  return CLI_OK;
}

static int remove_conf(const char *path) {
  bool is_changed;
  char why_not[NCCL_CONF_WHY_MAX];
  if (nccl_conf_remove(path, &is_changed, why_not) != 0) {
    return cli_fail("%s", why_not);
  }
  printf("%s: %s\n", path,
         is_changed ? "as it was before" : "stratus-env has written nothing to it");
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX], path[PATH_MAX];
  if (is_write && is_remove) {
    cli_fail("either --write-conf or --remove-conf");
    return CLI_USAGE;
  }
  if (argument_count == 1 && !is_write && !is_remove) {
    cli_fail("a FILE goes with --write-conf or --remove-conf");
    return CLI_USAGE;
  }
  if (is_remove) {
    return choose_file(argument_count, arguments, path) == CLI_OK ? remove_conf(path) : CLI_FAILED;
  }
  if (!plugin_place_find(directory, why_not)) {
    return cli_fail("%s", why_not);
  }
  if (!is_write) {
    return print_variables(directory);
  }
  return choose_file(argument_count, arguments, path) == CLI_OK ? write_conf(directory, path)
                                                                : CLI_FAILED;
}

static const struct cli_option options[] = {
  { .name = "for",
    .letter = 'f',
    .type = CLI_WORD,
    .value = &form,
    .argument = "bash|fish|slurm|docker|env-file",
    .help = "what reads it: a shell, srun and sbatch, docker run, or a file of NAME=value" },
  { .name = "write-conf",
    .type = CLI_FLAG,
    .value = &is_write,
    .help = "add it to FILE, which NCCL reads: /etc/nccl.conf for root, else ~/.nccl.conf" },
  { .name = "remove-conf",
    .type = CLI_FLAG,
    .value = &is_remove,
    .help = "take that back; all else in FILE stays as it is" },
  { .name = "override",
    .type = CLI_FLAG,
    .value = &is_override,
    .help = "with --write-conf: also where FILE names another plugin" },
  { 0 },
};

static const struct cli_program program = {
  .command = { .name = "stratus-env",
               .summary =
                   "Prints the variables with which a job uses stratus, or writes them to the "
                   "file that NCCL reads.",
               .arguments = "[FILE]",
               .max_arguments = 1,
               .example = "eval \"$(stratus-env)\"",
               .options = options,
               .run = run },
  .version = STRATUS_VERSION,
  .exit_status = "0 success, 1 failure, 2 wrong use",
};

int main(int argc, char **argv) {
  return cli_program(&program, argc, argv);
}
