/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic programming; keeps three rows of the table of distances between prefixes. */
#include "common/name_distance.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int min3(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

static bool is_same(char a, char b, bool ignores_case) {
  return a == b || (ignores_case && toupper((unsigned char)a) == toupper((unsigned char)b));
}

int name_distance(const char *name, size_t length, const char *other, bool is_part) {
  int rows[3][NAME_DISTANCE_MAX + 1]; /* of the letter, the one before, the one before that */
  size_t other_length = strnlen(other, NAME_DISTANCE_MAX);
  length = length < NAME_DISTANCE_MAX ? length : NAME_DISTANCE_MAX;
  for (size_t j = 0; j <= other_length; j++) {
    rows[0][j] = (int)j;
  }
  int best = rows[0][other_length];
  for (size_t i = 1; i <= length; i++) {
    int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
    row[0] = is_part ? 0 : (int)i;
    for (size_t j = 1; j <= other_length; j++) {
      bool is_kept = is_same(name[i - 1], other[j - 1], is_part);
      row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + !is_kept);
      bool is_exchanged = i > 1 && j > 1 && is_same(name[i - 1], other[j - 2], is_part) &&
                          is_same(name[i - 2], other[j - 1], is_part);
      if (is_exchanged && above2[j - 2] < row[j]) {
        row[j] = above2[j - 2] + 1;
      }
    }
    best = row[other_length] < best ? row[other_length] : best;
  }
  return is_part ? best : rows[length % 3][other_length];
}
