/* SPDX-License-Identifier: Apache-2.0 */
/* codec-speed: what coding costs and gains.
 *
 *   build/tests/codec-speed [--chunk BYTES] [--rounds N] [--form NAME] [--width -1|0|1|2|4] FILE...
 *
 * Each file is repeated to STREAM_BYTES, more than caches hold, and goes chunk by chunk through
 * encode to a second region as large, and from there through decode to a third; between them memcpy
 * of the same chunks, in each round. Prints for each form the ratio, and GB/s of bytes before
 * coding as least, median and most of the rounds, and the medians as parts of memcpy's. One thread.
 * The width is what a connection remembers, or --width for each chunk (-1: it guesses anew). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "net_plugin/codec/codec.h"
#include "net_plugin/codec/format.h"

enum { STREAM_BYTES = 128 << 20, MAX_ROUNDS = 99 };

struct streams {
  uint8_t *chunks, *coded, *out;
  uint32_t *coded_bytes; /* of each chunk; 0: as it is */
  size_t chunk_bytes, count;
};

struct options {
  size_t chunk_bytes;
  unsigned rounds;
  const char *form;  /* NULL: all */
  const char *width; /* NULL: as remembered */
};

static void fail(const char *what, const char *name) {
  fprintf(stderr, "codec-speed: %s: %s\n", name, what);
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) >> 21 << 21);
  if (!memory) {
    fail("no memory", "streams");
  }
  memset(memory, 1, bytes);
  return memory;
}

static void fill(struct streams *streams, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    fail("cannot be opened", path);
  }
  size_t got = fread(streams->chunks, 1, STREAM_BYTES, file);
  fclose(file);
  if (got < streams->chunk_bytes) {
    fail("is shorter than a chunk", path);
  }
  got = got / streams->chunk_bytes * streams->chunk_bytes;
  for (size_t at = got; at < STREAM_BYTES; at += got) {
    memcpy(streams->chunks + at, streams->chunks,
           STREAM_BYTES - at < got ? STREAM_BYTES - at : got);
  }
}

static uint8_t *compressed_chunk(struct streams *streams, size_t i) {
  return streams->coded + i * codec_room(streams->chunk_bytes);
}

/* Each of these goes over all chunks once, and returns GB/s. */

static double speed(const struct streams *streams, uint64_t since_ns) {
  return (double)(streams->count * streams->chunk_bytes) / (double)(clock_now_ns() - since_ns);
}

static double copy_all(struct streams *streams) {
  uint64_t begin = clock_now_ns();
  for (size_t i = 0; i < streams->count; i++) {
    memcpy(streams->out + i * streams->chunk_bytes, streams->chunks + i * streams->chunk_bytes,
           streams->chunk_bytes);
  }
  return speed(streams, begin);
}

static double encode_all(struct streams *streams, const struct codec_form *form, const char *width,
                         int *last_width) {
  struct codec_memory memory = { 0 };
  int fixed = width ? atoi(width) : 0;
  uint64_t begin = clock_now_ns();
  for (size_t i = 0; i < streams->count; i++) {
    const uint8_t *chunk = streams->chunks + i * streams->chunk_bytes;
    int asked = width ? fixed : codec_memory_choose(&memory);
    struct codec_result result =
        codec_encode_by(form, asked, chunk, streams->chunk_bytes, compressed_chunk(streams, i));
    if (!width) {
      codec_memory_note(&memory, &result);
    }
    streams->coded_bytes[i] = result.bytes;
    *last_width = result.width;
  }
  return speed(streams, begin);
}

static double decode_all(struct streams *streams, const struct codec_form *form) {
  uint64_t begin = clock_now_ns();
  for (size_t i = 0; i < streams->count; i++) {
    uint8_t *out = streams->out + i * streams->chunk_bytes;
    if (streams->coded_bytes[i] > 0 &&
        codec_decode_by(form, compressed_chunk(streams, i), streams->coded_bytes[i], out,
                        streams->chunk_bytes) != 0) {
      fail("did not decode", form->name);
    }
  }
  return speed(streams, begin);
}

static double ratio(const struct streams *streams) {
  size_t coded = 0;
  for (size_t i = 0; i < streams->count; i++) {
    coded += streams->coded_bytes[i] > 0 ? streams->coded_bytes[i] : streams->chunk_bytes;
  }
  return (double)(streams->count * streams->chunk_bytes) / (double)coded;
}

static void check(const struct streams *streams) {
  for (size_t i = 0; i < streams->count; i++) {
    size_t at = i * streams->chunk_bytes;
    if (streams->coded_bytes[i] > 0 &&
        memcmp(streams->chunks + at, streams->out + at, streams->chunk_bytes) != 0) {
      fail("came back changed", "a chunk");
    }
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_speeds(const char *what, double *speeds, unsigned rounds, double memcpy_median) {
  qsort(speeds, rounds, sizeof *speeds, by_size);
  double median = speeds[rounds / 2];
  printf("  %s %6.2f %6.2f %6.2f GB/s", what, speeds[0], median, speeds[rounds - 1]);
  if (memcpy_median > 0) {
    printf(" (%.2f of memcpy)", median / memcpy_median);
  }
}

static void measure(struct streams *streams, const struct codec_form *form,
                    const struct options *options) {
  unsigned rounds = options->rounds;
  double copies[MAX_ROUNDS], encodes[MAX_ROUNDS], decodes[MAX_ROUNDS];
  int width = CODEC_RAW;
  for (unsigned i = 0; i < rounds; i++) {
    copies[i] = copy_all(streams);
    encodes[i] = encode_all(streams, form, options->width, &width);
    decodes[i] = decode_all(streams, form);
  }
  check(streams);
  printf("  %-9s width %d ratio %.3f", form->name, width, ratio(streams));
  print_speeds("memcpy", copies, rounds, 0);
  print_speeds("encode", encodes, rounds, copies[rounds / 2]);
  if (ratio(streams) > 1) { /* else there was nothing to decode */
    print_speeds("decode", decodes, rounds, copies[rounds / 2]);
  }
  printf("\n");
  fflush(stdout);
}

static struct streams make_streams(size_t chunk_bytes) {
  struct streams streams = { .chunk_bytes = chunk_bytes, .count = STREAM_BYTES / chunk_bytes };
  streams.chunks = allocate(STREAM_BYTES);
  streams.out = allocate(STREAM_BYTES);
  streams.coded = allocate(streams.count * codec_room(chunk_bytes));
  streams.coded_bytes = allocate(streams.count * sizeof *streams.coded_bytes);
  return streams;
}

/* Returns the index of the first file. */
static int read_options(int argc, char **argv, struct options *options) {
  int i = 1;
  for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
    if (strcmp(argv[i], "--chunk") == 0) {
      options->chunk_bytes = strtoul(argv[i + 1], NULL, 0);
    } else if (strcmp(argv[i], "--rounds") == 0) {
      options->rounds = (unsigned)strtoul(argv[i + 1], NULL, 0);
    } else if (strcmp(argv[i], "--form") == 0) {
      options->form = argv[i + 1];
    } else if (strcmp(argv[i], "--width") == 0) {
      options->width = argv[i + 1];
    } else {
      fail("no such option; --chunk, --rounds, --form, --width", argv[i]);
    }
  }
  return i;
}

static bool are_right(const struct options *options) {
  static const char *const widths[] = { "-1", "0", "1", "2", "4" };
  bool is_width = options->width == NULL;
  for (size_t i = 0; !is_width && i < sizeof widths / sizeof *widths; i++) {
    is_width = strcmp(options->width, widths[i]) == 0;
  }
  return is_width && options->chunk_bytes >= CODEC_MIN_BYTES &&
         options->chunk_bytes <= STREAM_BYTES && options->rounds >= 1 &&
         options->rounds <= MAX_ROUNDS;
}

int main(int argc, char **argv) {
  struct options options = { .chunk_bytes = 128 << 10, .rounds = 7 };
  int i = read_options(argc, argv, &options);
  if (i >= argc || !are_right(&options)) {
    fprintf(stderr, "usage: codec-speed [--chunk BYTES, from 4096] [--rounds 1 to 99]\n"
                    "                   [--form NAME] [--width -1|0|1|2|4] FILE...\n");
    return 2;
  }
  struct streams streams = make_streams(options.chunk_bytes);
  for (; i < argc; i++) {
    printf("%s, chunks of %zu B, %u rounds: least, median, most\n", argv[i], options.chunk_bytes,
           options.rounds);
    fill(&streams, argv[i]);
    const struct codec_form *form;
    for (size_t k = 0; (form = codec_form(k)); k++) {
      bool is_wanted = !options.form || strcmp(options.form, form->name) == 0;
      if (is_wanted && form->is_usable()) {
        measure(&streams, form, &options);
      }
    }
  }
  return 0;
}
