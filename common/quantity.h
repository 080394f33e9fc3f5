/* SPDX-License-Identifier: Apache-2.0 */
/* quantity: numbers, sizes, durations and words as people write them.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: -EINVAL for text that is no such thing, -ERANGE if it does not fit; the
 * result is then left alone.
 *
 * The whole text must be the number: no spaces around it, nothing after it. */
#ifndef COMMON_QUANTITY_H
#define COMMON_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal with optional sign: "-1". */
int quantity_parse_int(const char *text, int64_t *value);

/* Bytes: "8", "64K", "128KiB", "1G"; K, M, G, T are powers of 1024, in either case. */
int quantity_parse_size(const char *text, uint64_t *bytes);

/* Place of `text` in "one|two|three" (either case), or -EINVAL. */
int quantity_find_word(const char *words, const char *text);

/* The next word of "a,b,c", cut to fit; *list moves behind it. False, with NULL there, at the end.
 */
enum { QUANTITY_WORD_MAX = 32 };
bool quantity_next_word(const char **list, char word[QUANTITY_WORD_MAX]);

/* Damerau-Levenshtein distance: insertions, deletions, replacements and exchanged neighbours, of
 * the first NAME_DISTANCE_MAX bytes. is_part: of the most similar part of `name`, ignoring case. */
enum { NAME_DISTANCE_MAX = 64 }; /* twice the longest name that we have */
int name_distance(const char *name, size_t length, const char *other, bool is_part);

/* Shortest exact form, as in "64K"; 24 bytes always suffice. */
enum { QUANTITY_TEXT_MAX = 24 };
const char *quantity_format_size(uint64_t bytes, char text[QUANTITY_TEXT_MAX]);

/* ---- any of them, as a number ---- */

enum quantity_type {
  QUANTITY_BOOL, /* 0/1, no/yes, off/on, false/true, in either case */
  QUANTITY_INT,
  QUANTITY_SIZE,
  QUANTITY_DURATION, /* "250ms", "10s", "5m", "1h", "20us", "100ns"; without a unit seconds */
  QUANTITY_ENUM,     /* place of one of `words`; if these have `off` and `on`, as BOOL as well */
  QUANTITY_STRING,   /* no number */
  QUANTITY_SECRET,   /* the same */
};
int quantity_parse(enum quantity_type type, const char *words, const char *text, int64_t *number);
/* What parses to it, as in "250ms". */
const char *quantity_format(enum quantity_type type, const char *words, int64_t number,
                            char text[QUANTITY_TEXT_MAX]);

#endif
