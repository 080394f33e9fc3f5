/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands, options in all their spellings, wrong use, help. */
#include "common/cli.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/plain.h"
#include "tests/lib/unit.h"

static bool is_verbose;
static int64_t count;
static uint64_t bytes;
static uint64_t wait_ns;
static const char *name;
static int mode;

static int ran;
static int ran_argument_count;
static char *ran_arguments[4];
static bool ran_json;

static int run(int argument_count, char **arguments, bool is_json) {
  ran++;
  ran_argument_count = argument_count;
  ran_json = is_json;
  for (int i = 0; i < argument_count && i < 4; i++) {
    ran_arguments[i] = arguments[i];
  }
  return CLI_OK;
}

static const char *said;
static char long_text[4096];

static int run_failing(int argument_count, char **arguments, bool is_json) {
  return cli_fail("%s did not work", said);
}

static const struct cli_option options[] = {
  { "verbose", 'v', CLI_FLAG, &is_verbose, NULL, "say more", 0, 0 },
  { "count", 'n', CLI_INT, &count, "N", "how often", 1, 100 },
  { "offset", 0, CLI_INT, &count, "N", "any number", 0, 0 },
  { "bytes", 'b', CLI_SIZE, &bytes, "SIZE", "how much", 0, 0 },
  { "wait", 0, CLI_DURATION, &wait_ns, "TIME", "how long", 0, 0 },
  { "name", 0, CLI_STRING, &name, "NAME", "who", 0, 0 },
  { "mode", 'm', CLI_WORD, &mode, "fast|slow", "how", 0, 0 },
  { 0 },
};

static const struct cli_command commands[] = {
  { .name = "go",
    .summary = "goes",
    .arguments = "HOST...",
    .min_arguments = 1,
    .max_arguments = 3,
    .example = "tool go a",
    .has_json = true,
    .options = options,
    .run = run },
  { .name = "stop", .summary = "stops", .arguments = "", .example = "tool stop", .run = run },
  { .name = "break",
    .summary = "breaks",
    .max_arguments = -1,
    .example = "tool break",
    .run = run_failing },
  { 0 },
};

static const struct cli_command single = {
  .name = "single",
  .summary = "runs",
  .arguments = "COMMAND...",
  .min_arguments = 1,
  .max_arguments = -1,
  .example = "single ls",
  .options = options,
  .run = run,
  .exit_status = "2 wrong use, else COMMAND's",
  .ends_at_operand = true,
};

static const struct cli_command *prepared;
static int prepare_status;

static int prepare(const struct cli_command *command) {
  prepared = command;
  return prepare_status;
}

static const struct cli_tool tool = { "tool", "does things", "1.2.3", commands, prepare };

static char out[8192];
static char err[8192];

/* Runs the tool with a command line; what it prints is in `out` and `err`. */
static int call(const char *line) {
  static char words[512];
  char *argv[16] = { NULL };
  int argc = 0;
  snprintf(words, sizeof words, "%s", line);
  for (char *save, *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    argv[argc++] = word;
  }
  ran = 0;
  is_verbose = false;
  count = 5;
  bytes = 65536;
  wait_ns = 10 * NS_PER_S;
  name = NULL;
  mode = 1;
  out[0] = err[0] = '\0';
  FILE *standard_output = stdout, *standard_error = stderr;
  stdout = fmemopen(out, sizeof out, "w");
  stderr = fmemopen(err, sizeof err, "w");
  assert_true(stdout && stderr);
  int status = strcmp(argv[0], "single") == 0 ? cli_program(&single, "1.2.3", argc, argv)
                                              : cli_main(&tool, argc, argv);
  fclose(stdout);
  fclose(stderr);
  stdout = standard_output;
  stderr = standard_error;
  return status;
}

UNIT_TEST(options_are_read_in_every_spelling) {
  assert_int_equal(call("tool go -v --count 7 --bytes=2M --wait 250ms --name x -m fast h"), 0);
  assert_int_equal(ran, 1);
  assert_true(is_verbose);
  assert_int_equal(count, 7);
  assert_int_equal(bytes, 2 << 20);
  assert_true(wait_ns == 250 * NS_PER_MS);
  assert_string_equal(name, "x");
  assert_int_equal(mode, 0);
  assert_false(ran_json);
  assert_int_equal(call("tool go h -n9 -b 1K --offset -3"), 0);
  assert_int_equal(bytes, 1024);
  assert_int_equal(count, -3);
  assert_int_equal(call("tool go --name= h"), 0);
  assert_string_equal(name, "");
}

UNIT_TEST(arguments_may_stand_anywhere) {
  assert_int_equal(call("tool go a --json b -v -- -c"), 0);
  assert_true(ran_json);
  assert_int_equal(ran_argument_count, 3);
  assert_string_equal(ran_arguments[0], "a");
  assert_string_equal(ran_arguments[1], "b");
  assert_string_equal(ran_arguments[2], "-c");
  assert_int_equal(call("tool go -"), 0);
  assert_string_equal(ran_arguments[0], "-");
}

UNIT_TEST(a_tool_without_commands) {
  assert_int_equal(call("single -v ls -v --json -h"), 0);
  assert_true(is_verbose);
  assert_int_equal(ran_argument_count, 4);
  assert_string_equal(ran_arguments[0], "ls");
  assert_string_equal(ran_arguments[1], "-v");
  assert_string_equal(ran_arguments[3], "-h");
  assert_int_equal(call("single -- -x"), 0);
  assert_string_equal(ran_arguments[0], "-x");
  assert_int_equal(call("single"), 2);
  assert_non_null(strstr(err, "single needs COMMAND...; see `single -h`"));
  assert_int_equal(call("single --nope"), 2);
  assert_int_equal(ran, 0);
  assert_int_equal(call("single --version"), 0);
  assert_string_equal(out, "single 1.2.3\n");
  assert_int_equal(call("single -h"), 0);
  assert_non_null(strstr(out, "usage: single [options] COMMAND...\n\nruns\n\noptions:\n"));
  assert_non_null(strstr(out, "\nexit status: 2 wrong use, else COMMAND's\n"));
}

UNIT_TEST(wrong_use_is_told) {
  static const struct {
    const char *line;
    const char *message;
  } cases[] = {
    { "tool stpo", "tool: there is no command stpo: did you mean stop? `tool -h` lists them\n" },
    { "tool gone", "tool: there is no command gone; `tool -h` lists them\n" },
    { "tool go", "tool: go needs HOST...; see `tool go -h`\n" },
    { "tool go a b c d", "tool: go does not take \"d\"; see `tool go -h`\n" },
    { "tool stop now", "tool: stop does not take \"now\"; see `tool stop -h`\n" },
    { "tool stop --json", "tool: stop has no option --json; see `tool stop -h`\n" },
    { "tool go h --speed 3", "tool: go has no option --speed; see `tool go -h`\n" },
    { "tool go h -x", "tool: go has no option -x; see `tool go -h`\n" },
    { "tool go h --verbosely", "tool: go has no option --verbosely; see `tool go -h`\n" },
    { "tool go h --verbose=1", "tool: --verbose takes no value\n" },
    { "tool go h -v1", "tool: --verbose takes no value\n" },
    { "tool go h --count", "tool: --count needs a value: N\n" },
    { "tool go h --count many", "tool: --count takes a number, not \"many\"\n" },
    { "tool go h --count 0", "tool: --count takes 1 to 100, not 0\n" },
    { "tool go h -n101", "tool: --count takes 1 to 100, not 101\n" },
    { "tool go h --bytes 1.5M", "tool: --bytes takes a size such as 64K, not \"1.5M\"\n" },
    { "tool go h --wait long", "tool: --wait takes a time such as 250ms or 10s, not \"long\"\n" },
    { "tool go h -m medium", "tool: --mode takes fast|slow, not \"medium\"\n" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(call(cases[i].line), CLI_USAGE);
    assert_string_equal(err, cases[i].message);
    assert_string_equal(out, "");
    assert_int_equal(ran, 0);
  }
}

UNIT_TEST(alone_it_prints_its_commands) {
  assert_int_equal(call("tool"), CLI_USAGE);
  assert_non_null(strstr(err, "  go             goes\n"));
  assert_string_equal(out, "");
}

UNIT_TEST(a_command_runs_when_it_is_prepared) {
  prepared = NULL;
  assert_int_equal(call("tool go -h"), CLI_OK);
  assert_int_equal(call("tool go"), CLI_USAGE);
  assert_null(prepared);
  assert_int_equal(call("tool stop"), CLI_OK);
  assert_ptr_equal(prepared, &commands[1]);
  prepare_status = CLI_FAILED;
  assert_int_equal(call("tool stop"), CLI_FAILED);
  prepare_status = CLI_OK;
  assert_int_equal(ran, 0);
}

UNIT_TEST(messages_are_whole_and_command_no_terminal) {
  said = long_text;
  memset(long_text, 'x', sizeof long_text - 1);
  assert_int_equal(call("tool break"), CLI_FAILED);
  assert_int_equal(strlen(err), strlen("tool:  did not work\n") + sizeof long_text - 1);
  said = "\033[2J\x7f\r\n\xc3\xa9";
  assert_int_equal(call("tool break"), CLI_FAILED);
  assert_string_equal(err, "tool: ?[2J??\n\xc3\xa9 did not work\n");
  assert_string_equal(out, "");
  char text[] = "a~ \t\xc3\xa9\x7f";
  assert_string_equal(plain_text(text), "a~ ????");
}

UNIT_TEST(help_shows_tables_and_examples) {
  assert_int_equal(call("tool --help"), CLI_OK);
  assert_non_null(strstr(out, "  go             goes\n"));
  assert_non_null(strstr(out, "example:\n  tool go a\n"));
  assert_int_equal(call("tool go h -h --nonsense"), CLI_OK);
  assert_int_equal(ran, 0);
  assert_non_null(strstr(out, "usage: tool go [options] HOST...\n"));
  assert_non_null(strstr(out, "-n, --count N"));
  assert_non_null(strstr(out, "how often [5]\n"));
  assert_non_null(strstr(out, "how much [64K]\n"));
  assert_non_null(strstr(out, "how long [10s]\n"));
  assert_non_null(strstr(out, "who\n"));
  assert_non_null(strstr(out, "--mode fast|slow"));
  assert_non_null(strstr(out, "how [slow]\n"));
  assert_non_null(strstr(out, "--json"));
  assert_non_null(strstr(out, "example:\n  tool go a\n"));
  assert_string_equal(err, "");
  assert_int_equal(call("tool stop --help"), CLI_OK);
  assert_null(strstr(out, "--json"));
  assert_int_equal(call("tool --version"), CLI_OK);
  assert_string_equal(out, "tool 1.2.3\n");
}
