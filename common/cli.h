/* SPDX-License-Identifier: Apache-2.0 */
/* cli: subcommands and options of the tools, from tables.
 * Owns: nothing.  Threads: the main thread.
 * Blocks: never.  Fails: a usage error is a message on stderr and exit status 2.
 *
 * Data goes to stdout, messages to stderr. If data cannot be written that is told, and a failure:
 * commands need not look. Exit status: 0 success, 1 failure, 2 usage error. */
#ifndef COMMON_CLI_H
#define COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

enum cli_type {
  CLI_FLAG,     /* bool; takes no argument */
  CLI_INT,      /* int64_t */
  CLI_NUMBER,   /* int; has limits */
  CLI_SIZE,     /* uint64_t bytes: 8, 64K, 1G */
  CLI_DURATION, /* uint64_t ns: 10s, 250ms */
  CLI_STRING,   /* const char *, points into argv */
  CLI_WORD,     /* int: index of the word in `argument` */
};

struct cli_option {
  const char *name; /* without dashes; NULL ends the table */
  char letter;      /* short form, or 0 */
  enum cli_type type;
  void *value;          /* of the type above; holds the default, which -h shows */
  const char *argument; /* its name in -h; for CLI_WORD the words, as in "a|b" */
  const char *help;
  int64_t low;  /* smallest number, size or time accepted; both 0: any */
  int64_t high; /* largest */
};

struct cli_command {
  const char *name;      /* NULL ends the table */
  const char *summary;   /* one line */
  const char *arguments; /* as -h shows them, as in "HOST..."; empty: none */
  int min_arguments;
  int max_arguments;                /* -1: any number */
  const char *example;              /* a whole command line that runs as it is printed */
  bool has_json;                    /* takes --json */
  const struct cli_option *options; /* NULL: none */
  int (*run)(int argument_count, char **arguments, bool is_json); /* returns the exit status */
  const char *exit_status; /* one line, as in "0 success, 1 failure"; NULL: as of all commands */
  bool ends_at_operand;    /* what follows the first argument belongs to it, options too */
};

struct cli_tool {
  const char *name;
  const char *summary;
  const char *version;
  const struct cli_command *commands;
  int (*prepare)(
      const struct cli_command *command); /* before it runs; CLI_OK: it runs. NULL: none */
};

/* Runs the command in argv[1] after reading its options; returns the exit status. Options and
 * arguments may be mixed; `--` ends the options; `-h` and `--help` work everywhere. */
int cli_main(const struct cli_tool *tool, int argc, char **argv);

/* The same for a tool without subcommands; the command's name is the tool's. */
int cli_program(const struct cli_command *command, const char *version, int argc, char **argv);

/* Of options with these names, as in "a|b", one that the command that runs was given; or NULL. */
const char *cli_given(const char *names);

/* Prints "TOOL: " and the text to stderr, without control characters. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of a failure; returns CLI_FAILED. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of wrong use; returns CLI_USAGE. */
int cli_fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What the first failure said, since later ones follow from it; never NULL. */
const char *cli_first_failure(void);

#endif
