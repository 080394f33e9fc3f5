/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and copies on the CPU, with the arithmetic of NCCL's src/device/reduce_kernel.h. */
#include <string.h>

#include "tests/fake_cuda/nccl/block.h"

#if defined __clang__ && __clang_major__ < 15 && defined __x86_64__
#error "the emulated GPU needs _Float16: gcc 12, clang 15 or a newer one"
#endif
typedef _Float16 f16;
typedef struct {
  uint16_t bits;
} bf16;

int nccl_type_size(int type) {
  static const int sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
  return sizes[type];
}

/* ---- small floating point types ---- */

static inline float bf16_to_float(bf16 x) {
  uint32_t bits = (uint32_t)x.bits << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* Rounds to nearest even; a NaN stays a NaN. */
static inline bf16 float_to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (bf16){ (uint16_t)((bits >> 16) | 0x40) };
  return (bf16){ (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) };
}

/* ---- element loops ---- */

/* Runs one expression over arrays a, b of a type; the compiler vectorises each instance. */
#define EACH(T, EXPRESSION)                                                                        \
  do {                                                                                             \
    const T *a = a_ptr;                                                                            \
    const T *b = b_ptr;                                                                            \
    T *out = out_ptr;                                                                              \
    for (size_t i = 0; i < count; i++)                                                             \
      out[i] = (EXPRESSION);                                                                       \
  } while (0)

#define INT_ADD(T, x, y) (T)((x) + (y))
#define INT_MUL(T, x, y) (T)((x) * (y))
/* The argument is a mask: XOR with it turns signed and max comparisons into unsigned min. */
#define INT_MINMAX(T, x, y) (((T)((x) ^ (T)arg)) < ((T)((y) ^ (T)arg)) ? (x) : (y))
#define FLOAT_ADD(x, y) ((x) + (y))
#define FLOAT_MUL(x, y) ((x) * (y))
#define FLOAT_MIN(x, y) ((x) < (y) || (y) != (y) ? (x) : (y))
#define FLOAT_MAX(x, y) ((x) > (y) || (y) != (y) ? (x) : (y))

/* Defines a function that combines two arrays of any NCCL type: a[i] with b[AT]. */
#define DEFINE_PAIR(NAME, INT, FLOAT, AT)                                                          \
  static void NAME(int type, uint64_t arg, void *out_ptr, const void *a_ptr, const void *b_ptr,    \
                   size_t count) {                                                                 \
    (void)arg;                                                                                     \
    switch (type) {                                                                                \
    case TYPE_I8:                                                                                  \
    case TYPE_U8:                                                                                  \
      EACH(uint8_t, INT(uint8_t, a[i], b[AT]));                                                    \
      break;                                                                                       \
    case TYPE_I32:                                                                                 \
    case TYPE_U32:                                                                                 \
      EACH(uint32_t, INT(uint32_t, a[i], b[AT]));                                                  \
      break;                                                                                       \
    case TYPE_I64:                                                                                 \
    case TYPE_U64:                                                                                 \
      EACH(uint64_t, INT(uint64_t, a[i], b[AT]));                                                  \
      break;                                                                                       \
    case TYPE_F16:                                                                                 \
      EACH(f16, (f16)FLOAT((float)a[i], (float)b[AT]));                                            \
      break;                                                                                       \
    case TYPE_F32:                                                                                 \
      EACH(float, FLOAT(a[i], b[AT]));                                                             \
      break;                                                                                       \
    case TYPE_F64:                                                                                 \
      EACH(double, FLOAT(a[i], b[AT]));                                                            \
      break;                                                                                       \
    case TYPE_BF16:                                                                                \
      EACH(bf16, float_to_bf16(FLOAT(bf16_to_float(a[i]), bf16_to_float(b[AT]))));                 \
      break;                                                                                       \
    }                                                                                              \
  }

DEFINE_PAIR(pair_add, INT_ADD, FLOAT_ADD, i)
DEFINE_PAIR(pair_mul, INT_MUL, FLOAT_MUL, i)
DEFINE_PAIR(pair_min, INT_MINMAX, FLOAT_MIN, i)
DEFINE_PAIR(pair_max, INT_MINMAX, FLOAT_MAX, i)
DEFINE_PAIR(multiply_by_one, INT_MUL, FLOAT_MUL, 0)

void reduce_pair(const struct reduction *r, void *out, const void *a, const void *b, size_t count) {
  if (r->op == OP_PROD)
    pair_mul(r->type, 0, out, a, b, count);
  else if (r->op == OP_MINMAX && (r->arg & 1))
    pair_max(r->type, r->arg, out, a, b, count);
  else if (r->op == OP_MINMAX)
    pair_min(r->type, r->arg, out, a, b, count);
  else
    pair_add(r->type, 0, out, a, b, count);
}

/* Multiplies by the scalar in the argument. */
static void scale(const struct reduction *r, void *out, const void *a, size_t count) {
  char scalar[sizeof r->arg] __attribute__((aligned(8))); /* of the type, in its first bytes */
  memcpy(scalar, &r->arg, sizeof scalar);
  multiply_by_one(r->type, 0, out, a, scalar, count);
}

void reduce_pre(const struct reduction *r, void *out, const void *in, size_t count) {
  if (r->op == OP_PREMULSUM)
    scale(r, out, in, count);
  else if (out != in)
    memcpy(out, in, count * (size_t)r->size);
}

#define DIVIDE(SIGNED, UNSIGNED)                                                                   \
  for (size_t i = 0; i < count; i++) {                                                             \
    if (is_signed)                                                                                 \
      ((SIGNED *)data)[i] = (SIGNED)(((SIGNED *)data)[i] / (int64_t)divisor);                      \
    else                                                                                           \
      ((UNSIGNED *)data)[i] = (UNSIGNED)(((UNSIGNED *)data)[i] / divisor);                         \
  }

/* SumPostDiv: the argument is divisor * 2 + (1 if signed). */
void reduce_post(const struct reduction *r, void *data, size_t count) {
  if (r->op != OP_SUMPOSTDIV)
    return;
  uint64_t divisor = r->arg >> 1;
  bool is_signed = r->arg & 1;
  if (r->size == 1)
    DIVIDE(int8_t, uint8_t)
  else if (r->size == 4)
    DIVIDE(int32_t, uint32_t)
  else
    DIVIDE(int64_t, uint64_t)
}

void reduce_copy(const struct reduction *r, bool pre, bool post, int n_sources, void **sources,
                 int n_destinations, void **destinations, size_t count) {
  char scaled[16384] __attribute__((aligned(64)));
  size_t size = (size_t)r->size;
  size_t block_count = sizeof scaled / size;
  if (!n_sources || !n_destinations)
    return;
  for (size_t done = 0; done < count; done += block_count) {
    size_t n = MIN(block_count, count - done);
    size_t at = done * size;
    const char *first = (char *)sources[0] + at;
    char *out = (char *)destinations[0] + at;
    if (pre && r->op == OP_PREMULSUM) {
      scale(r, scaled, first, n);
      first = scaled;
    }
    if (n_sources == 1 && out != first)
      memmove(out, first, n * size);
    for (int s = 1; s < n_sources; s++) {
      reduce_pair(r, out, first, (char *)sources[s] + at, n);
      first = out;
    }
    if (post)
      reduce_post(r, out, n);
    for (int d = 1; d < n_destinations; d++) {
      char *other = (char *)destinations[d] + at;
      if (other != out)
        memcpy(other, out, n * size);
    }
  }
}
