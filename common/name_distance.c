/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the table of distances is kept, between what was read of the name and the beginnings
 * of the other one. */
#include "common/name_distance.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int min3(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}

/* is_part: what stands before and after the likest part of the name costs nothing. */
static int distance(const char *name, size_t length, const char *other, bool is_part) {
  int row[NAME_DISTANCE_MAX + 1];
  size_t other_length = strnlen(other, NAME_DISTANCE_MAX);
  length = length < NAME_DISTANCE_MAX ? length : NAME_DISTANCE_MAX;
  for (size_t j = 0; j <= other_length; j++) {
    row[j] = (int)j;
  }
  int best = row[other_length];
  for (size_t i = 1; i <= length; i++) {
    int diagonal = row[0];
    unsigned char letter = (unsigned char)name[i - 1];
    row[0] = is_part ? 0 : (int)i;
    for (size_t j = 1; j <= other_length; j++) {
      int above = row[j];
      unsigned char wanted = (unsigned char)other[j - 1];
      bool is_same = is_part ? toupper(letter) == toupper(wanted) : letter == wanted;
      row[j] = min3(above + 1, row[j - 1] + 1, diagonal + !is_same);
      diagonal = above;
    }
    best = row[other_length] < best ? row[other_length] : best;
  }
  return is_part ? best : row[other_length];
}

int name_distance(const char *name, size_t length, const char *other) {
  return distance(name, length, other, false);
}

int name_distance_within(const char *name, size_t length, const char *word) {
  return distance(name, length, word, true);
}
