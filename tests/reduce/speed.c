/* SPDX-License-Identifier: Apache-2.0 */
/* reduce-speed: GB/s of net_plugin/reduce by variant and number of sources, beside memcpy.
 *
 * Bytes are those that are read and written. A case and a memcpy of buffers of the same size run in
 * turn; the ratio is the median of the rounds, so that what else the machine does hits both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/quantity.h"
#include "net_plugin/reduce/reduce.h"

enum { ROUNDS = 5, MOST_SOURCES = 8 };
/* Nanoseconds of one measurement: many calls of the smallest size. */
#define MEASURED_NS (4 * NS_PER_MS)
/* Bytes from one buffer's page offset to the next one's: buffers of one allocator seldom begin at
 * equal ones, and lines that share a cache set would be measured instead. */
#define STAGGER 832

enum work { REDUCE, NARROW, WIDEN, FROM_WIRE };

static const struct speed_case {
  const char *name;
  enum work work;
  enum reduce_type type;
  enum reduce_op op;
  enum reduce_wire wire;
} cases[] = {
  { "float32 sum", REDUCE, REDUCE_FLOAT32, REDUCE_SUM, 0 },
  { "float32 max", REDUCE, REDUCE_FLOAT32, REDUCE_MAX, 0 },
  { "float64 sum", REDUCE, REDUCE_FLOAT64, REDUCE_SUM, 0 },
  { "bfloat16 sum", REDUCE, REDUCE_BFLOAT16, REDUCE_SUM, 0 },
  { "float16 sum", REDUCE, REDUCE_FLOAT16, REDUCE_SUM, 0 },
  { "float8e4m3 sum", REDUCE, REDUCE_FLOAT8E4M3, REDUCE_SUM, 0 },
  { "int8 prod", REDUCE, REDUCE_INT8, REDUCE_PROD, 0 },
  { "int64 min", REDUCE, REDUCE_INT64, REDUCE_MIN, 0 },
  { "from bfloat16", FROM_WIRE, 0, 0, REDUCE_WIRE_BFLOAT16 },
  { "from float16", FROM_WIRE, 0, 0, REDUCE_WIRE_FLOAT16 },
  { "to bfloat16", NARROW, 0, 0, REDUCE_WIRE_BFLOAT16 },
  { "to float16", NARROW, 0, 0, REDUCE_WIRE_FLOAT16 },
  { "bfloat16 to f32", WIDEN, 0, 0, REDUCE_WIRE_BFLOAT16 },
  { "float16 to f32", WIDEN, 0, 0, REDUCE_WIRE_FLOAT16 },
};

struct buffers {
  unsigned char *allocated[MOST_SOURCES + 2];
  const void *srcs[MOST_SOURCES];
  void *dst, *wire;
  size_t bytes; /* of one buffer */
};

static void make_buffers(struct buffers *buffers, size_t bytes) {
  buffers->bytes = bytes;
  for (int k = 0; k < MOST_SOURCES + 2; k++) {
    buffers->allocated[k] = aligned_alloc(4096, (bytes + 16384) / 4096 * 4096);
    if (!buffers->allocated[k]) {
      fprintf(stderr, "reduce-speed: no memory for %d buffers of %zu bytes\n", MOST_SOURCES + 2,
              bytes);
      exit(1);
    }
    unsigned char *at = buffers->allocated[k] + k * STAGGER;
    for (size_t i = 0; i < bytes; i += 4) {
      float value = (float)(i % 1000) / 999;
      memcpy(at + i, &value, 4);
    }
    if (k < MOST_SOURCES) {
      buffers->srcs[k] = at;
    } else {
      *(k == MOST_SOURCES ? &buffers->dst : &buffers->wire) = at;
    }
  }
}

static void free_buffers(struct buffers *buffers) {
  for (int k = 0; k < MOST_SOURCES + 2; k++) {
    free(buffers->allocated[k]);
  }
}

/* One call; the bytes that it reads and writes. Wires have as many elements as an f32 buffer. */
static size_t run_case(const struct speed_case *one, const struct reduce_variant *variant,
                       struct buffers *buffers, unsigned n) {
  struct reduce_counters counters = { 0 };
  size_t count = buffers->bytes / sizeof(float);
  switch (one->work) {
  case REDUCE:
    reduce_n(variant, buffers->dst, buffers->srcs, n,
             buffers->bytes / reduce_element_bytes(one->type), one->type, one->op);
    return (n + 1) * buffers->bytes;
  case NARROW:
    reduce_narrow(variant, buffers->wire, buffers->srcs[0], count, one->wire, &counters);
    return count * 6;
  case WIDEN:
    reduce_widen(variant, buffers->dst, buffers->wire, count, one->wire);
    return count * 6;
  default:
    reduce_from_wire(variant, buffers->wire, buffers->dst, buffers->srcs, n, 0, count, one->wire,
                     &counters);
    return count * (4 + 2 * (n - 1) + 2 + 4);
  }
}

/* GB/s; memcpy without a case. */
static double measure(const struct speed_case *one, const struct reduce_variant *variant,
                      struct buffers *buffers, unsigned n) {
  uint64_t start = clock_now_ns(), now;
  size_t bytes = 0;
  do {
    if (one) {
      bytes += run_case(one, variant, buffers, n);
    } else {
      memcpy(buffers->dst, buffers->srcs[0], buffers->bytes);
      __asm__ volatile("" : : "r"(buffers->dst) : "memory"); /* it is wanted */
      bytes += 2 * buffers->bytes;
    }
    now = clock_now_ns();
  } while (now - start < MEASURED_NS);
  return (double)bytes / (double)(now - start);
}

static int by_value(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double median(double values[ROUNDS]) {
  qsort(values, ROUNDS, sizeof *values, by_value);
  return values[ROUNDS / 2];
}

static void print_case(const struct speed_case *one, const struct reduce_variant *variant,
                       struct buffers *buffers) {
  printf("%-9s %-16s", variant->name, one->name);
  bool takes_many = one->work == REDUCE || one->work == FROM_WIRE;
  for (unsigned n = takes_many ? 2 : 1; n <= (takes_many ? MOST_SOURCES : 1); n *= 2) {
    double rates[ROUNDS], ratios[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
      double copied = measure(NULL, NULL, buffers, 1);
      rates[round] = measure(one, variant, buffers, n);
      ratios[round] = rates[round] / copied;
    }
    printf("  %u: %6.1f %5.2f", n, median(rates), median(ratios));
  }
  printf("\n");
}

static void print_size(size_t bytes) {
  struct buffers buffers;
  char text[QUANTITY_TEXT_MAX];
  make_buffers(&buffers, bytes);
  double rates[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    rates[round] = measure(NULL, NULL, &buffers, 1);
  }
  printf("\nbuffers of %s, memcpy %.1f GB/s. number of sources: GB/s, ratio to memcpy\n",
         quantity_format_size(bytes, text), median(rates));
  for (size_t v = 0; reduce_variant(v); v++) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases && reduce_variant(v)->is_usable(); c++) {
      print_case(&cases[c], reduce_variant(v), &buffers);
    }
  }
  free_buffers(&buffers);
}

int main(int argc, char **argv) {
  /* A chunk in the cache of a core, and what no cache holds. */
  static char *usual[] = { "128K", "32M" };
  char **sizes = argc > 1 ? argv + 1 : usual;
  for (int i = 0; i < (argc > 1 ? argc - 1 : 2); i++) {
    uint64_t bytes;
    if (quantity_parse_size(sizes[i], &bytes) || bytes < 64 || bytes > 1u << 30 || bytes % 8) {
      fprintf(stderr,
              "usage: reduce-speed [SIZE...]\n'%s' is no size of a buffer: 64 to 1G, a "
              "multiple of 8 bytes\n",
              sizes[i]);
      return 2;
    }
    print_size(bytes);
  }
  return 0;
}
