/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the subcommand, fills in its options, prints help from the same tables. */
#include "common/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/quantity.h"

enum { HELP_LEFT = 32 }; /* columns of options, before what they do */

/* Set by cli_main, for messages. */
static const char *tool_name = "stratus";
static char first_failure[512];

/* Messages may contain file names, which need not be ASCII, and contents of files: control
 * characters must not reach the terminal. */
static void print_message(bool is_failure, const char *format, va_list arguments) {
  char *text;
  if (vasprintf(&text, format, arguments) < 0) {
    fprintf(stderr, "%s: out of memory\n", tool_name);
    return;
  }
  for (char *c = text; *c; c++) {
    if (((unsigned char)*c < ' ' && *c != '\n') || *c == '\x7f') {
      *c = '?';
    }
  }
  fprintf(stderr, "%s: %s\n", tool_name, text);
  if (is_failure && !first_failure[0]) {
    snprintf(first_failure, sizeof first_failure, "%s", text);
  }
  free(text);
}

const char *cli_first_failure(void) {
  return first_failure[0] ? first_failure : "for an unknown reason";
}

void cli_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_message(false, format, arguments);
  va_end(arguments);
}

int cli_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_message(true, format, arguments);
  va_end(arguments);
  return CLI_FAILED;
}

int cli_fail_usage(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_message(true, format, arguments);
  va_end(arguments);
  return CLI_USAGE;
}

/* ---- help ---- */

/* By enum cli_type: what its text is, and what is said to be wanted. */
static const struct {
  enum quantity_type type;
  const char *wanted;
} kinds[] = {
  [CLI_FLAG] = { QUANTITY_BOOL, NULL },
  [CLI_INT] = { QUANTITY_INT, "a number" },
  [CLI_NUMBER] = { QUANTITY_INT, "a number" },
  [CLI_SIZE] = { QUANTITY_SIZE, "a size such as 64K" },
  [CLI_DURATION] = { QUANTITY_DURATION, "a time such as 250ms or 10s" },
  [CLI_STRING] = { QUANTITY_STRING, NULL },
  [CLI_WORD] = { QUANTITY_ENUM, NULL }, /* one of `argument` */
};

static bool is_int(const struct cli_option *option) {
  return option->type == CLI_NUMBER || option->type == CLI_WORD;
}

static void format_default(const struct cli_option *option, char *text, size_t text_bytes) {
  char number[QUANTITY_TEXT_MAX];
  const char *value = number;
  if (option->type == CLI_STRING) {
    value = *(const char *const *)option->value;
  } else if (option->type != CLI_FLAG) {
    quantity_format(kinds[option->type].type, option->argument,
                    is_int(option) ? *(const int *)option->value : *(const int64_t *)option->value,
                    number);
  }
  bool has_one = option->type != CLI_FLAG && value;
  snprintf(text, text_bytes, has_one ? " [%s]" : "", value);
}

static void print_option(const struct cli_option *option) {
  char left[64];
  char preset[64];
  char letter[8] = "    ";
  if (option->letter) {
    snprintf(letter, sizeof letter, "-%c, ", option->letter);
  }
  snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name,
           option->type == CLI_FLAG ? "" : " ", option->type == CLI_FLAG ? "" : option->argument);
  format_default(option, preset, sizeof preset);
  /* Two blanks at least end the left part: scripts/gen-man and the shell's completion read this. */
  bool is_long = strlen(left) >= HELP_LEFT;
  printf("  %s%s%-*s ", is_long ? left : "", is_long ? "\n  " : "", HELP_LEFT, is_long ? "" : left);
  for (const char *c = option->help; *c; c++) {
    putchar(*c);
    if (*c == '\n') {
      printf("  %-*s ", HELP_LEFT, "");
    }
  }
  printf("%s\n", preset);
}

/* "TOOL COMMAND", or "TOOL" for a tool without commands. */
static const char *spoken_name(const struct cli_command *command) {
  static char text[64];
  snprintf(text, sizeof text, "%s %s", tool_name, command->name);
  return strcmp(tool_name, command->name) == 0 ? tool_name : text;
}

static int print_command_help(const struct cli_command *command) {
  const char *arguments = command->arguments ? command->arguments : "";
  printf("usage: %s [options]%s%s\n\n%s\n\noptions:\n", spoken_name(command),
         arguments[0] ? " " : "", arguments, command->summary);
  for (const struct cli_option *option = command->options; option && option->name; option++) {
    print_option(option);
  }
  if (command->has_json) {
    printf("  %-*s %s\n", HELP_LEFT, "    --json", "print JSON instead of text");
  }
  printf("  %-*s %s\n\nexample:\n  %s\n", HELP_LEFT, "-h, --help", "print this", command->example);
  if (command->exit_status) {
    printf("\nexit status: %s\n", command->exit_status);
  }
  return CLI_OK;
}

static void print_tool_help(FILE *to, const struct cli_tool *tool) {
  fprintf(to, "usage: %s COMMAND [options]\n\n%s\n\ncommands:\n", tool->name, tool->summary);
  for (const struct cli_command *command = tool->commands; command->name; command++) {
    fprintf(to, "  %-14s %s\n", command->name, command->summary);
  }
  fprintf(to,
          "\n`%s COMMAND -h` shows the options and an example.\n"
          "exit status: 0 success, 1 failure, 2 usage error\n\nexample:\n  %s\n",
          tool->name, tool->commands[0].example);
}

/* ---- options ---- */

static const struct cli_option *given[128]; /* each once */
static size_t given_count;

const char *cli_given(const char *names) {
  for (size_t i = 0; i < given_count; i++) {
    if (quantity_find_word(names, given[i]->name) >= 0) {
      return given[i]->name;
    }
  }
  return NULL;
}

static int parse_number(const struct cli_option *option, const char *text) {
  const enum quantity_type type = kinds[option->type].type;
  const char *wanted = kinds[option->type].wanted;
  int64_t number;
  if (quantity_parse(type, option->argument, text, &number) < 0) {
    return cli_fail_usage("--%s takes %s, not \"%s\"", option->name,
                          wanted ? wanted : option->argument, text);
  }
  bool is_limited = option->low != 0 || option->high != 0;
  if (is_limited && (number < option->low || number > option->high)) {
    char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
    return cli_fail_usage("--%s takes %s to %s, not %s", option->name,
                          quantity_format(type, NULL, option->low, low),
                          quantity_format(type, NULL, option->high, high), text);
  }
  if (is_int(option)) {
    *(int *)option->value = (int)number;
  } else {
    *(int64_t *)option->value = number;
  }
  return CLI_OK;
}

static int parse_value(const struct cli_option *option, const char *text) {
  if (!cli_given(option->name) && given_count < sizeof given / sizeof given[0]) {
    given[given_count++] = option;
  }
  if (option->type == CLI_FLAG) {
    *(bool *)option->value = true;
  } else if (option->type == CLI_STRING) {
    *(const char **)option->value = text;
  } else {
    return parse_number(option, text);
  }
  return CLI_OK;
}

/* By its name, or by its letter. */
static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            size_t length, bool is_long) {
  const struct cli_option *option = command->options;
  while (option && option->name &&
         (is_long ? strlen(option->name) != length || memcmp(option->name, name, length) != 0
                  : option->letter != *name)) {
    option++;
  }
  return option && option->name ? option : NULL;
}

/* State of parsing a command line. Operands are moved to the front of argv. */
struct reader {
  const struct cli_command *command;
  char **argv;
  int argc;
  int next; /* in argv */
  int operand_count;
  bool is_json;
  bool is_help;
};

/* "--name value", "--name=value", "-n value", "-nvalue" */
static int read_option(struct reader *reader, const char *text) {
  bool is_long = text[1] == '-';
  const char *name = text + (is_long ? 2 : 1);
  size_t length = is_long ? strcspn(name, "=") : 1;
  const struct cli_option *option = find_option(reader->command, name, length, is_long);
  if (!option) {
    return cli_fail_usage("%s has no option %s; see `%s -h`", reader->command->name, text,
                          spoken_name(reader->command));
  }
  const char *attached = name + length + (is_long && name[length] == '=');
  bool has_attached = name[length] != '\0';
  if (option->type == CLI_FLAG) {
    return has_attached ? cli_fail_usage("--%s takes no value", option->name)
                        : parse_value(option, NULL);
  }
  if (!has_attached && reader->next == reader->argc) {
    return cli_fail_usage("--%s needs a value: %s", option->name, option->argument);
  }
  return parse_value(option, has_attached ? attached : reader->argv[reader->next++]);
}

static int read_word(struct reader *reader, bool *is_only_operands) {
  char *text = reader->argv[reader->next++];
  if (*is_only_operands || text[0] != '-' || text[1] == '\0') {
    reader->argv[reader->operand_count++] = text;
    *is_only_operands |= reader->command->ends_at_operand;
    return CLI_OK;
  }
  if (strcmp(text, "--") == 0) {
    *is_only_operands = true;
    return CLI_OK;
  }
  if (strcmp(text, "-h") == 0 || strcmp(text, "--help") == 0) {
    reader->is_help = true;
    return CLI_OK;
  }
  if (reader->command->has_json && strcmp(text, "--json") == 0) {
    reader->is_json = true;
    return CLI_OK;
  }
  return read_option(reader, text);
}

static int check_operand_count(const struct reader *reader) {
  const struct cli_command *command = reader->command;
  if (reader->operand_count < command->min_arguments) {
    return cli_fail_usage("%s needs %s; see `%s -h`", command->name, command->arguments,
                          spoken_name(command));
  }
  if (command->max_arguments >= 0 && reader->operand_count > command->max_arguments) {
    return cli_fail_usage("%s does not take \"%s\"; see `%s -h`", command->name,
                          reader->argv[command->max_arguments], spoken_name(command));
  }
  return CLI_OK;
}

static int run_command(const struct cli_command *command,
                       int (*prepare)(const struct cli_command *command), int argc, char **argv) {
  struct reader reader = { .command = command, .argv = argv, .argc = argc };
  bool is_only_operands = false;
  int status = CLI_OK;
  given_count = 0;
  while (status == CLI_OK && !reader.is_help && reader.next < argc) {
    status = read_word(&reader, &is_only_operands);
  }
  if (status == CLI_OK && reader.is_help) {
    return print_command_help(command);
  }
  if (status == CLI_OK) {
    status = check_operand_count(&reader);
  }
  if (status == CLI_OK && prepare) {
    status = prepare(command);
  }
  return status == CLI_OK ? command->run(reader.operand_count, argv, reader.is_json) : status;
}

/* The command whose name is most like `name`; NULL if none is. */
static const char *find_similar(const struct cli_command *commands, const char *name) {
  const char *similar = NULL;
  int least = 3; /* mistakes: two are a slip in "calibrate", three make any short word another */
  for (const struct cli_command *command = commands; command->name; command++) {
    int distance = name_distance(name, strlen(name), command->name, false);
    if (distance < least && distance < (int)strlen(command->name) - 1) {
      least = distance;
      similar = command->name;
    }
  }
  return similar;
}

/* Where one of the standard files is closed, none that is opened later must be taken for it. */
static void hold_standard_files(void) {
  int fd;
  while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO) {
  }
  close(fd);
}

/* What was printed is out, or that is a failure: a disk may be full, a pipe closed. */
static int end_output(int status) {
  errno = 0; /* of what was written before the reason is not known any more */
  if (fflush(stdout) == 0 && !ferror(stdout)) {
    return status;
  }
  cli_fail("cannot write the output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
  return status == CLI_OK ? CLI_FAILED : status;
}

static int run_tool(const struct cli_tool *tool, int argc, char **argv) {
  if (argc < 2) {
    print_tool_help(stderr, tool);
    return CLI_USAGE;
  }
  if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
    print_tool_help(stdout, tool);
    return CLI_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("%s %s\n", tool->name, tool->version);
    return CLI_OK;
  }
  for (const struct cli_command *command = tool->commands; command->name; command++) {
    if (strcmp(command->name, argv[1]) == 0) {
      return run_command(command, tool->prepare, argc - 2, argv + 2);
    }
  }
  const char *similar = find_similar(tool->commands, argv[1]);
  return cli_fail_usage("there is no command %s%s%s%s `%s -h` lists them", argv[1],
                        similar ? ": did you mean " : ";", similar ? similar : "",
                        similar ? "?" : "", tool->name);
}

int cli_main(const struct cli_tool *tool, int argc, char **argv) {
  tool_name = tool->name;
  hold_standard_files();
  return end_output(run_tool(tool, argc, argv));
}

int cli_program(const struct cli_command *command, const char *version, int argc, char **argv) {
  tool_name = command->name;
  if (argc > 1 && strcmp(argv[1], "--version") == 0) {
    printf("%s %s\n", tool_name, version);
    return end_output(CLI_OK);
  }
  return end_output(run_command(command, NULL, argc - 1, argv + 1));
}
