/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-env: prints what loads the plugins for shells, schedulers and containers, or writes it to
 * NCCL's configuration file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/plugin_file.h"
#include "common/tools/conf_block.h"
#include "common/tools/job_settings.h"
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
  /* In a container the loader will know them. */
  const struct job_request request = {
    .directory = directory,
    .is_known = form == FORM_DOCKER || plugin_file_is_known_to_loader(directory),
  };
  job_settings_make(&request, &settings);
  for (int i = 0; i < JOB_OBSTACLES_MAX && settings.obstacles[i]; i++) {
    cli_fail("jobs will run without stratus: %s", settings.obstacles[i]);
  }
  if (!settings.obstacles[0] && settings.why_not_tuner) {
    cli_fail("jobs will run without the tuner of stratus: %s", settings.why_not_tuner);
  }
  for (int i = 0; i < JOB_DOUBTS_MAX && settings.doubts[i]; i++) {
    cli_fail("jobs may run without stratus: %s", settings.doubts[i]);
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

/* Without one that is named: the file that NCCL reads for all, or for this user. */
static int choose_file(int argument_count, char **arguments, char path[PATH_MAX]) {
  if (argument_count == 1) {
    snprintf(path, PATH_MAX, "%s", arguments[0]);
  } else if (geteuid() == 0) {
    snprintf(path, PATH_MAX, "%s", NCCL_CONF_SYSTEM_FILE);
  } else if (!nccl_conf_user_file(NULL, nccl_version_installed, path)) {
    return cli_fail("there is no home of yours, neither in HOME nor in the user database: name "
                    "the FILE");
  }
  return CLI_OK;
}

static const char *const plugin_variables[] = { "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN" };

/* What FILE has beside our lines. */
static bool is_in_the_way(const char *path, const char *name) {
  char value[NCCL_CONF_VALUE_MAX];
  struct nccl_conf_setting theirs = { .value = value, .file = path };
  if (!conf_block_read_others(path, name, value, &theirs.line)) {
    return false;
  }
  bool is_net = strcmp(name, "NCCL_NET") == 0;
  const char *why_not = is_net     ? job_settings_why_not_net(&theirs)
                        : value[0] ? job_settings_why_not_plugin(name, &theirs)
                                   : NULL;
  if (why_not && is_net) {
    cli_fail("nothing was written: %s; jobs that read it need that transport: take the line out "
             "first",
             why_not);
  } else if (why_not && !is_override) {
    cli_fail("nothing was written: %s; --override puts the lines of stratus before it, where they "
             "count",
             why_not);
  }
  return why_not && (is_net || !is_override);
}

/* The same transport in the environment, or in the other file: those jobs would not start, as NCCL
 * would not look for the plugin that has it. */
static bool is_another_needed(void) {
  const struct nccl_conf_setting net = nccl_conf_find("NCCL_NET");
  const char *why_not = job_settings_why_not_net(&net);
  if (why_not) {
    cli_fail("nothing was written: %s; jobs with that need another transport: unset it first",
             why_not);
  }
  return why_not != NULL;
}

/* What counts more than FILE; false: nothing. After FILE was written. */
static bool tell_what_wins(void) {
  bool is_said = false;
  for (int i = 0; i < 2; i++) {
    const struct nccl_conf_setting theirs = nccl_conf_find(plugin_variables[i]);
    const char *why_not =
        theirs.value ? job_settings_why_not_plugin(plugin_variables[i], &theirs) : NULL;
    if (why_not) {
      cli_fail("jobs of this user run without %s: %s", i == 0 ? "stratus" : "its tuner", why_not);
    }
    is_said = is_said || why_not;
  }
  return is_said;
}

static bool is_same_file(const char *a, const char *b) {
  struct stat of_a, of_b;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

/* Of those that NCCL reads for this user. */
static bool is_read_by_nccl(const char *path) {
  char own[PATH_MAX];
  return is_same_file(path, NCCL_CONF_SYSTEM_FILE) ||
         (nccl_conf_user_file(NULL, nccl_version_installed, own) && is_same_file(path, own));
}

static void tell_written(const char *path, const char *directory, bool is_known) {
  bool is_read = is_read_by_nccl(path);
  bool wins = is_read && tell_what_wins();
  printf("%s: %s; stratus-env --remove-conf%s%s takes it back\n", path,
         wins ? "written" : "jobs that read it use stratus", is_read ? "" : " ",
         is_read ? "" : path);
  if (!is_read) {
    puts("NCCL reads it where NCCL_CONF_FILE names it, from 2.23.4 on.");
  }
  if (!is_known) {
    printf(
        "NCCL 2.19, 2.20 and 2.27.3 take no paths, as it has now. For these, let the loader know "
        "%s\n(a file in /etc/ld.so.conf.d, then ldconfig) and write it again.\n",
        directory);
  }
}

static int load_files(void) {
  return nccl_conf_load(NULL, nccl_version_installed) == 0 ? CLI_OK : cli_fail("out of memory");
}

static int write_conf(const char *directory, const char *path) {
  char net[PLUGIN_FILE_MAX], tuner[PLUGIN_FILE_MAX], why_not[CONF_BLOCK_WHY_MAX];
  bool is_known = plugin_file_is_known_to_loader(directory);
  snprintf(net, sizeof net, "%s/%s", directory, PLUGIN_NET);
  snprintf(tuner, sizeof tuner, "%s/%s", directory, PLUGIN_TUNER);
  const struct conf_block_line lines[] = {
    { "NCCL_NET_PLUGIN", is_known ? "stratus" : net },
    { "NCCL_TUNER_PLUGIN", is_known ? PLUGIN_TUNER : tuner },
    { "NCCL_NET_PLUGIN_REF_COUNT", "1" },
  };
  if (load_files() != CLI_OK || is_in_the_way(path, "NCCL_NET") ||
      is_in_the_way(path, plugin_variables[0]) || is_in_the_way(path, plugin_variables[1]) ||
      is_another_needed()) {
    return CLI_FAILED;
  }
  if (conf_block_write(path, lines, sizeof lines / sizeof lines[0], why_not) != 0) {
    return cli_fail("%s", why_not);
  }
  if (load_files() != CLI_OK) {
    return CLI_FAILED;
  }
  tell_written(path, directory, is_known);
  return CLI_OK;
}

static int remove_conf(const char *path) {
  struct conf_block_removed removed;
  char why_not[CONF_BLOCK_WHY_MAX];
  if (conf_block_remove(path, &removed, why_not) != 0) {
    return cli_fail("%s", why_not);
  }
  if (!removed.has_block) {
    printf("%s: stratus-env has written nothing to it\n", path);
  } else if (removed.kept_lines > 0) {
    printf("%s: the lines of stratus-env are gone; %u of between its marks that it had not written "
           "stay\n",
           path, removed.kept_lines);
  } else {
    printf("%s: as it was before\n", path);
  }
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)is_json;
  char directory[PATH_MAX], why_not[PLUGIN_WHY_MAX], path[PATH_MAX];
  if (is_write && is_remove) {
    return cli_fail_usage("either --write-conf or --remove-conf");
  }
  if (argument_count == 1 && !is_write && !is_remove) {
    return cli_fail_usage("a FILE goes with --write-conf or --remove-conf");
  }
  if (is_remove) {
    return choose_file(argument_count, arguments, path) == CLI_OK ? remove_conf(path) : CLI_FAILED;
  }
  if (!plugin_file_find_ours(directory, why_not)) {
    return cli_fail("%s", why_not);
  }
  if (!is_write) { /* a container has files of its own */
    return form == FORM_DOCKER || load_files() == CLI_OK ? print_variables(directory) : CLI_FAILED;
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
