/* SPDX-License-Identifier: Apache-2.0 */
/* How a chunk's planes are best coded, judged from one block of elements out of all parts of it. */
#include <string.h>

#include "net_plugin/codec/format.h"
#include "net_plugin/codec/limits.h"

enum {
  SYMBOLS = 256,
  COUNTERS = 4, /* tables that take turns, as the same counter twice in a row waits for memory */
  ROWS = CODEC_BLOCK / CODEC_ROW,
  /* Symbols of the widest window, its near escapes, and the special one. */
  MAX_SPAN = (1 << CODEC_MAX_BITS) - 2 + CODEC_FAR + 1,
};

struct counts {
  int16_t of[SYMBOLS]; /* signed, as SSE2 has a maximum of such */
};

/* Windows around a peak, each one symbol larger than the last, on the side where more is. */
struct windows {
  uint8_t begin[MAX_SPAN + 1]; /* first symbol of the window of so many */
  unsigned inside[MAX_SPAN + 1];
};

static void count(const uint8_t *values, struct counts *counts) {
  int16_t tables[COUNTERS][SYMBOLS];
  memset(tables, 0, sizeof tables);
  for (unsigned i = 0; i < CODEC_BLOCK; i += COUNTERS) {
    for (unsigned k = 0; k < COUNTERS; k++) {
      tables[k][values[i + k]]++;
    }
  }
  for (unsigned i = 0; i < SYMBOLS; i++) {
    counts->of[i] = (int16_t)(tables[0][i] + tables[1][i] + tables[2][i] + tables[3][i]);
  }
}

/* The commonest symbol, of several the first. */
static uint8_t peak_of(const struct counts *counts) {
  int16_t most = 0;
  for (unsigned i = 0; i < SYMBOLS; i++) {
    most = counts->of[i] > most ? counts->of[i] : most;
  }
  unsigned peak = 0;
  while (counts->of[peak] != most) {
    peak++;
  }
  return (uint8_t)peak;
}

/* The commonest symbol that is not among the `span` ones from `begin` on. */
static uint8_t peak_outside(const struct counts *counts, uint8_t begin, unsigned span) {
  struct counts others = *counts;
  for (unsigned i = 0; i < span; i++) {
    others.of[(uint8_t)(begin + i)] = -1;
  }
  return peak_of(&others);
}

static void grow(const struct counts *counts, uint8_t peak, struct windows *windows) {
  uint8_t first = peak, last = peak;
  windows->begin[0] = windows->begin[1] = peak;
  windows->inside[0] = 0;
  windows->inside[1] = (unsigned)counts->of[peak];
  for (unsigned span = 2; span <= MAX_SPAN; span++) {
    int below = counts->of[(uint8_t)(first - 1)], above = counts->of[(uint8_t)(last + 1)];
    bool is_below = below >= above;
    first = (uint8_t)(first - is_below);
    last = (uint8_t)(last + !is_below);
    windows->begin[span] = first;
    windows->inside[span] = windows->inside[span - 1] + (unsigned)(is_below ? below : above);
  }
}

/* Bits of a block that is coded by windows of 2^bits - 2 symbols, `other` being the special one, or
 * by one of 2^bits - 1, whose last is the special one. */
static unsigned cost(const struct counts *counts, const struct windows *windows, uint8_t other,
                     unsigned bits, struct codec_plane *plane) {
  unsigned window = codec_window(bits), span = window + CODEC_FAR;
  unsigned apart = windows->inside[window] + (unsigned)counts->of[other];
  bool is_apart = (uint8_t)(other - windows->begin[window + 1]) >= window + 1 &&
                  apart > windows->inside[window + 1];
  uint8_t base = windows->begin[window + !is_apart];
  unsigned inside = is_apart ? apart : windows->inside[window + 1];
  unsigned near = windows->inside[span];
  if (is_apart && (uint8_t)(other - windows->begin[span]) >= span) {
    near += (unsigned)counts->of[other];
  }
  plane->bits = (uint8_t)bits;
  plane->base = base;
  plane->special = is_apart ? other : (uint8_t)(base + window);
  plane->below = (uint8_t)(base - windows->begin[span]);
  return bits * CODEC_BLOCK + 4 * (CODEC_BLOCK - inside) + 8 * (CODEC_BLOCK - near);
}

/* The cheapest of all bits with windows around this peak, if cheaper than `best`. */
static void try_peak(const struct counts *counts, uint8_t peak, uint8_t other, unsigned *best,
                     struct codec_plane *plane) {
  struct windows windows;
  grow(counts, peak, &windows);
  for (unsigned bits = 1; bits <= CODEC_MAX_BITS; bits++) {
    struct codec_plane each;
    unsigned bits_of_block = cost(counts, &windows, other, bits, &each);
    if (bits_of_block < *best) {
      *best = bits_of_block;
      *plane = each;
    }
  }
}

/* Bits that a block of this plane is expected to take. */
static unsigned plan_plane(const uint8_t *values, struct codec_plane *plane) {
  struct counts counts;
  count(values, &counts);
  uint8_t peak = peak_of(&counts);
  unsigned best = CODEC_PLAIN_BITS * CODEC_BLOCK;
  *plane = (struct codec_plane){ CODEC_PLAIN_BITS, 0, peak, 0 };
  if (counts.of[peak] < CODEC_LEAST_PEAK) {
    return best;
  }
  struct windows windows;
  grow(&counts, peak, &windows);
  unsigned widest = codec_window(CODEC_MAX_BITS) + 1;
  uint8_t other = peak_outside(&counts, windows.begin[widest], widest);
  try_peak(&counts, peak, other, &best, plane);
  /* Zeros beside numbers: the peak is a symbol alone, the window is elsewhere. */
  uint8_t second = peak_outside(&counts, peak, 1);
  if ((uint8_t)(second - peak + 1) > 2) {
    try_peak(&counts, second, peak, &best, plane);
  }
  return counts.of[peak] == CODEC_BLOCK ? 0 : best;
}

/* A block of which each row is from another eighth of the chunk. */
static void sample(unsigned width, const uint8_t *chunk, size_t bytes, uint8_t *elements) {
  size_t part = bytes / width / ROWS, row = (size_t)CODEC_ROW * width;
  for (size_t i = 0; i < ROWS; i++) {
    memcpy(elements + i * row, chunk + (i * part + (part - CODEC_ROW) / 2) * width, row);
  }
}

size_t codec_plan(const struct codec_form *form, unsigned width, const uint8_t *chunk, size_t bytes,
                  struct codec_layout *layout) {
  uint8_t elements[CODEC_BLOCK * CODEC_MAX_WIDTH];
  codec_block planes[CODEC_MAX_WIDTH];
  sample(width, chunk, bytes, elements);
  if (width == 1) {
    codec_copy_block(planes[0], elements);
  } else {
    form->split(width, elements, planes);
  }
  unsigned bits = 8;
  layout->width = width;
  for (unsigned i = 0; i < width; i++) {
    bits += plan_plane(planes[i], &layout->planes[i]);
  }
  return bits / 8;
}
