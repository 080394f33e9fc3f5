/* SPDX-License-Identifier: Apache-2.0 */
/* STRATUS_* variables and quantities from any text. A line of the input is one variable: its first
 * byte chooses the name, or leaves it to the line. What the getters give is within the range that
 * the table accepts, and what is printed reads back as the same. */
#include "common/param.h"
#include "common/quantity.h"
#include "tests/fuzz/fuzz.h"

enum { VARIABLES_MAX = 16 };

static void check_ranges(void) {
  FUZZ_CHECK(param_int(PARAM_FLOWS) >= 0 && param_int(PARAM_FLOWS) <= 64);
  FUZZ_CHECK(param_int(PARAM_DSCP) >= -1 && param_int(PARAM_DSCP) <= 63);
  uint64_t chunk = param_size(PARAM_CHUNK_BYTES), buffer = param_size(PARAM_SOCKET_BUFFER_BYTES);
  FUZZ_CHECK(chunk >= 4096 && chunk <= 4 << 20);
  FUZZ_CHECK(buffer == 0 || (buffer >= 4096 && buffer <= 1 << 30));
  FUZZ_CHECK(param_size(PARAM_EAGER_BYTES) <= 256 << 10);
  uint64_t timeout_ns = param_duration_ns(PARAM_LINK_TIMEOUT);
  FUZZ_CHECK(timeout_ns >= 100000000ull && timeout_ns <= 3600000000000ull);
  FUZZ_CHECK(param_enum(PARAM_PROGRESS) >= 0 && param_enum(PARAM_PROGRESS) <= 2);
  fuzz_read_all(param_string(PARAM_PORT_RANGE), strlen(param_string(PARAM_PORT_RANGE)));
  param_bool(PARAM_TUNER);
}

static void check_quantities(const char *text) {
  char formatted[QUANTITY_TEXT_MAX];
  uint64_t value, again;
  int64_t number;
  bool is_true;
  if (quantity_parse_size(text, &value) == 0) {
    FUZZ_CHECK(quantity_parse_size(quantity_format_size(value, formatted), &again) == 0);
    FUZZ_CHECK(again == value);
  }
  if (quantity_parse_duration(text, &value) == 0) {
    FUZZ_CHECK(quantity_parse_duration(quantity_format_duration(value, formatted), &again) == 0);
    FUZZ_CHECK(again == value);
  }
  if (quantity_parse_int(text, &number) == 0) {
    int64_t second;
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    FUZZ_CHECK(quantity_parse_int(digits, &second) == 0 && second == number);
  }
  quantity_parse_bool(text, &is_true);
  FUZZ_CHECK(quantity_find_word("one|two|three", text) < 3);
  quantity_find_word(text, "two");
}

static char *next_variable(struct fuzz_input *input) {
  unsigned which = fuzz_u8(input);
  char *line = fuzz_line(input), *text;
  check_quantities(line);
  int length = which < PARAM_COUNT ? asprintf(&text, "%s=%s", param_name(which), line)
                                   : asprintf(&text, "STRATUS_%s", line);
  FUZZ_CHECK(length >= 0);
  free(line);
  return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  log_set_sink(fuzz_swallow_log);
  struct fuzz_input input = { data, size };
  char *environment[VARIABLES_MAX + 1] = { NULL };
  for (unsigned i = 0; i < VARIABLES_MAX && input.left > 0; i++) {
    environment[i] = next_variable(&input);
  }
  param_load(environment);
  check_ranges();
  param_warn_unknown(environment);
  char *printed;
  size_t bytes;
  FILE *to = open_memstream(&printed, &bytes);
  FUZZ_CHECK(to != NULL);
  param_print(to, PARAM_FORMAT_LIST);
  param_print(to, PARAM_FORMAT_MARKDOWN);
  fclose(to);
  FUZZ_CHECK(bytes > 0);
  free(printed);
  param_load((char *[]){ NULL });
  for (unsigned i = 0; i < VARIABLES_MAX; i++) {
    free(environment[i]);
  }
  return 0;
}
