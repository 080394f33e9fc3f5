/* SPDX-License-Identifier: Apache-2.0 */
/* Fields in their order, then words "key=value". */
#include "common/profile_row.h"

#include <errno.h>
#include <string.h>

#include "common/profile_schema.h"
#include "common/quantity.h"

enum {
  ROW_FIELDS = 5, /* bytes_lo bytes_hi algo proto channels */
  US_MAX = 1000000000,
  PERCENT_MAX = 1000,
};

/* What a row may have after its fields, and which of it came; bits in this order. */
static const char *const extra_names[] = { "over", "default_us", "choice_us", "noise_pct" };
enum { EXTRA_OVER, EXTRA_DEFAULT, EXTRA_CHOICE, EXTRA_NOISE, EXTRA_COUNT };

/* bytes_lo or bytes_hi; `max` stands for the end of all sizes. */
static int parse_bytes(struct scan *scan, struct scan_span word, const char *what, bool is_max_good,
                       uint64_t *bytes) {
  char text[SCAN_TOKEN_MAX];
  if (is_max_good && scan_is(word, "max")) {
    *bytes = UINT64_MAX;
    return 0;
  }
  if (!scan_copy(word, text, sizeof text) || quantity_parse_size(text, bytes) < 0) {
    return scan_fail(scan, word.at, "%s takes a size such as 64K%s, not \"%.*s\"", what,
                     is_max_good ? " or max" : "", SCAN_ARGS(word));
  }
  return 0;
}

static enum profile_algorithm parse_algorithm(struct scan *scan, struct scan_span word) {
  return (enum profile_algorithm)scan_word(scan, word, "algo", profile_algorithm_names);
}

static enum profile_protocol parse_protocol(struct scan *scan, struct scan_span word) {
  return (enum profile_protocol)scan_word(scan, word, "proto", profile_protocol_names);
}

/* "tree/simple" */
static int parse_over(struct scan *scan, struct scan_span value, struct profile_row *row) {
  const char *slash = memchr(value.at, '/', value.length);
  if (!slash) {
    return scan_fail(scan, value.at, "over takes a cell such as tree/ll, not \"%.*s\"",
                     SCAN_ARGS(value));
  }
  size_t length = (size_t)(slash - value.at);
  row->over_algorithm = parse_algorithm(scan, (struct scan_span){ value.at, length });
  row->over_protocol =
      parse_protocol(scan, (struct scan_span){ slash + 1, value.length - length - 1 });
  return scan_status(scan);
}

static int parse_percent(struct scan *scan, struct scan_span value, const char *what,
                         uint32_t *permille) {
  uint64_t milli = 0;
  scan_milli(scan, value, what, PERCENT_MAX, &milli);
  *permille = (uint32_t)(milli / 100);
  return milli % 100 == 0 ? scan_status(scan)
                          : scan_fail(scan, value.at, "%s has one decimal", what);
}

static int parse_time(struct scan *scan, struct scan_span value, const char *what, uint64_t *ns) {
  scan_milli(scan, value, what, US_MAX, ns);
  return *ns > 0 ? scan_status(scan) : scan_fail(scan, value.at, "%s is more than 0", what);
}

static int parse_extra(struct scan *scan, struct scan_span word, struct profile_row *row,
                       unsigned *seen) {
  const char *equals = memchr(word.at, '=', word.length);
  struct scan_span name = { word.at, equals ? (size_t)(equals - word.at) : word.length };
  int extra = 0;
  while (extra < EXTRA_COUNT && !(equals && scan_is(name, extra_names[extra]))) {
    extra++;
  }
  if (extra == EXTRA_COUNT) {
    return scan_fail(scan, word.at,
                     "after channels a row takes over=, default_us=, choice_us= and "
                     "noise_pct=, not \"%.*s\"",
                     SCAN_ARGS(word));
  }
  if (*seen & (1u << extra)) {
    return scan_fail(scan, word.at, "%s is given twice", extra_names[extra]);
  }
  *seen |= 1u << extra;
  struct scan_span value = { equals + 1, word.length - name.length - 1 };
  switch (extra) {
  case EXTRA_OVER:
    return parse_over(scan, value, row);
  case EXTRA_NOISE:
    return parse_percent(scan, value, "noise_pct", &row->noise_permille);
  case EXTRA_DEFAULT:
    return parse_time(scan, value, "default_us", &row->default_ns);
  default:
    return parse_time(scan, value, "choice_us", &row->choice_ns);
  }
}

static int parse_extras(struct scan *scan, struct scan_span *line, struct profile_row *row) {
  const unsigned measured = 1u << EXTRA_OVER | 1u << EXTRA_DEFAULT | 1u << EXTRA_CHOICE;
  unsigned seen = 0;
  struct scan_span first = { NULL, 0 };
  for (struct scan_span word = scan_take_word(line); word.length > 0; word = scan_take_word(line)) {
    first = first.at ? first : word;
    int result = parse_extra(scan, word, row, &seen);
    if (result < 0) {
      return result;
    }
  }
  row->is_measured = (seen & measured) == measured;
  bool is_part = (seen & (measured | 1u << EXTRA_NOISE)) != 0;
  if (is_part && !row->is_measured) {
    return scan_fail(scan, first.at, "over=, default_us= and choice_us= come together");
  }
  return 0;
}

int profile_row_parse(struct scan *scan, struct scan_span line, struct profile_row *row) {
  struct scan_span words[ROW_FIELDS];
  *row = (struct profile_row){ 0 };
  for (int i = 0; i < ROW_FIELDS; i++) {
    words[i] = scan_take_word(&line);
    if (words[i].length == 0) {
      return scan_fail(scan, words[i].at,
                       "a row has five fields: bytes_lo bytes_hi algo proto channels");
    }
  }
  parse_bytes(scan, words[0], "bytes_lo", false, &row->bytes_lo);
  parse_bytes(scan, words[1], "bytes_hi", true, &row->bytes_hi);
  row->algorithm = parse_algorithm(scan, words[2]);
  row->protocol = parse_protocol(scan, words[3]);
  scan_number(scan, words[4], "channels", 0, PROFILE_CHANNELS_MAX, false, &row->channels);
  return scan_status(scan) < 0 ? -EINVAL : parse_extras(scan, &line, row);
}
