/* SPDX-License-Identifier: Apache-2.0 */
/* Invented tensors from a small generator of random numbers, real ones from files. */
#include "tests/lib/tensors.h"

#include <stdio.h>
#include <string.h>

#include "common/random.h"
#include "tests/lib/unit.h"

enum { SAMPLE_BYTES = 48 * 1024 }; /* as tests/codec/make-samples writes them */

static const char *const samples[TENSOR_SAMPLES] = {
  "resnet18-gradient.f32",         "resnet18-gradient.bf16",           "resnet18-weights.bf16",
  "resnet18-gradient.bf16-in-f32", "transformer-gradient.f32",         "transformer-gradient.bf16",
  "transformer-weights.bf16",      "transformer-gradient.bf16-in-f32",
};

const char *tensor_name(unsigned which) {
  return samples[which - TENSOR_INVENTED];
}

/* About normal: the sum of four; the variance is another one for each 1000 numbers. */
static uint32_t normal_f32(uint64_t bits, size_t i) {
  static const float scales[] = { 1e-3f, 4e-3f, 1e-2f, 2e-4f };
  float sum = -2 * 65535.0f;
  for (int k = 0; k < 4; k++, bits >>= 16) {
    sum += (float)(bits & 0xffff);
  }
  float value = sum / 65535 * scales[i / 1000 % 4];
  uint32_t pattern;
  memcpy(&pattern, &value, sizeof pattern);
  return pattern;
}

/* The lower bytes are the element. */
static uint32_t invent(unsigned which, uint64_t *state, size_t i) {
  static const uint16_t odd[] = { 0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81, 0x0001, 0x807f, 0x8000 };
  uint64_t bits = random_next(state);
  uint32_t normal = normal_f32(random_next(state), i);
  switch (which) {
  case TENSOR_ZEROS:
  case TENSOR_ONE_BYTE:
    return 0;
  case TENSOR_RANDOM:
    return (uint32_t)bits;
  case TENSOR_BYTES:
    return (uint32_t)((bits & 7) + (bits >> 8 & 7) - 7 - (bits >> 16 & 1));
  case TENSOR_EVERY_16:
    return (uint32_t)i;
  case TENSOR_SPARSE_BF16:
    return i / 700 % 3 == 0 || bits % 4 == 0 ? 0 : normal >> 16;
  case TENSOR_ODD_BF16:
    return bits % 7 == 0 ? odd[bits / 7 % 8] : normal >> 16;
  case TENSOR_LINES:
    return i % 64 >= 60 ? (i % 64 == 60) * 77 : normal >> 16;
  case TENSOR_F32:
    return normal;
  case TENSOR_BF16_IN_F32:
    return normal & 0xffff0000;
  case TENSOR_INT32:
    return (uint32_t)(bits % 40000) - 20000;
  default:
    return normal >> 16;
  }
}

static void read_sample(unsigned which, uint8_t *buffer, size_t bytes) {
  char path[128];
  snprintf(path, sizeof path, "tests/data/codec/%s", tensor_name(which));
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t got = fread(buffer, 1, bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES, file);
  fclose(file);
  assert_true(got == bytes || got == SAMPLE_BYTES);
  for (; got < bytes; got++) {
    buffer[got] = buffer[got - SAMPLE_BYTES];
  }
}

void tensor_fill(unsigned which, uint8_t *buffer, size_t bytes) {
  static const uint8_t widths[TENSOR_INVENTED] = {
    [TENSOR_RANDOM] = 1, [TENSOR_BYTES] = 1,       [TENSOR_F32] = 4,
    [TENSOR_INT32] = 4,  [TENSOR_BF16_IN_F32] = 4,
  };
  if (which >= TENSOR_INVENTED) {
    read_sample(which, buffer, bytes);
    return;
  }
  uint64_t state = which;
  size_t width = widths[which] ? widths[which] : 2;
  for (size_t i = 0; i * width < bytes; i++) {
    uint32_t element = invent(which, &state, i);
    size_t left = bytes - i * width;
    memcpy(buffer + i * width, &element, left < width ? left : width);
  }
  if (which == TENSOR_ONE_BYTE && bytes > 0) {
    buffer[bytes / 3] = 0x5a;
  }
}
