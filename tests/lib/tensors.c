/* SPDX-License-Identifier: Apache-2.0 */
/* Invented tensors from a small generator of random numbers, real ones from files. */
#include "tests/lib/tensors.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/unit.h"

enum { SAMPLE_BYTES = 48 * 1024 }; /* as tests/codec/make-samples writes them */

static const char *const names[TENSORS] = {
  "random",
  "zeros",
  "one byte",
  "every 16 bits",
  "bf16",
  "f32",
  "bf16 in f32",
  "sparse bf16",
  "odd bf16",
  "int32",
  "bytes",
  "LL128 lines",
  "resnet18-gradient.f32",
  "resnet18-gradient.bf16",
  "resnet18-weights.bf16",
  "resnet18-gradient.bf16-in-f32",
  "transformer-gradient.f32",
  "transformer-gradient.bf16",
  "transformer-weights.bf16",
  "transformer-gradient.bf16-in-f32",
};

const char *tensor_name(unsigned which) {
  return names[which];
}

/* xorshift64* (Vigna 2016). */
static uint64_t draw(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

/* About normal: the sum of four; the variance is another one for each 1000 numbers. */
static uint32_t normal_f32(uint64_t *state, size_t i) {
  static const float scales[] = { 1e-3f, 4e-3f, 1e-2f, 2e-4f };
  uint64_t bits = draw(state);
  float sum = -2 * 65535.0f;
  for (int k = 0; k < 4; k++, bits >>= 16) {
    sum += (float)(bits & 0xffff);
  }
  float value = sum / 65535 * scales[i / 1000 % 4];
  uint32_t pattern;
  memcpy(&pattern, &value, sizeof pattern);
  return pattern;
}

static uint16_t odd_bf16(uint64_t *state, size_t i) {
  static const uint16_t odd[] = { 0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81, 0x0001, 0x807f, 0x8000 };
  uint64_t bits = draw(state);
  return bits % 7 == 0 ? odd[bits / 7 % 8] : (uint16_t)(normal_f32(state, i) >> 16);
}

static uint16_t element_16(unsigned which, uint64_t *state, size_t i) {
  switch (which) {
  case TENSOR_EVERY_16:
    return (uint16_t)i;
  case TENSOR_SPARSE_BF16:
    return i / 700 % 3 == 0 || draw(state) % 4 == 0 ? 0 : (uint16_t)(normal_f32(state, i) >> 16);
  case TENSOR_ODD_BF16:
    return odd_bf16(state, i);
  case TENSOR_LINES:
    return i % 64 >= 60 ? (i % 64 == 60) * 77 : (uint16_t)(normal_f32(state, i) >> 16);
  default:
    return (uint16_t)(normal_f32(state, i) >> 16);
  }
}

static uint32_t element_32(unsigned which, uint64_t *state, size_t i) {
  switch (which) {
  case TENSOR_F32:
    return normal_f32(state, i);
  case TENSOR_BF16_IN_F32:
    return normal_f32(state, i) & 0xffff0000;
  default:
    return (uint32_t)(draw(state) % 40000) - 20000;
  }
}

static uint8_t element_8(unsigned which, uint64_t *state) {
  uint64_t bits = draw(state);
  return which == TENSOR_RANDOM ? (uint8_t)(bits >> 32)
                                : (uint8_t)((bits & 7) + (bits >> 8 & 7) - 7 - (bits >> 16 & 1));
}

static void invent(unsigned which, uint8_t *buffer, size_t bytes) {
  uint64_t state = UINT64_C(0x9e3779b97f4a7c15) + which;
  bool is_32 = which == TENSOR_F32 || which == TENSOR_BF16_IN_F32 || which == TENSOR_INT32;
  bool is_8 = which == TENSOR_RANDOM || which == TENSOR_BYTES;
  size_t width = is_32 ? 4 : is_8 ? 1 : 2;
  for (size_t i = 0; i * width < bytes; i++) {
    uint32_t element = is_32  ? element_32(which, &state, i)
                       : is_8 ? element_8(which, &state)
                              : element_16(which, &state, i);
    size_t left = bytes - i * width;
    memcpy(buffer + i * width, &element, left < width ? left : width);
  }
}

static void read_sample(unsigned which, uint8_t *buffer, size_t bytes) {
  char path[128];
  snprintf(path, sizeof path, "tests/data/codec/%s", names[which]);
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
  if (which >= TENSOR_INVENTED) {
    read_sample(which, buffer, bytes);
  } else if (which == TENSOR_ZEROS || which == TENSOR_ONE_BYTE) {
    memset(buffer, 0, bytes);
    if (which == TENSOR_ONE_BYTE && bytes > 0) {
      buffer[bytes / 3] = 0x5a;
    }
  } else {
    invent(which, buffer, bytes);
  }
}
