/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: little-endian integers at any alignment, for wire frames and handles; and a copy with a
 * defined order of stores. Owns: nothing.  Threads: any. Blocks: never.  Fails: cannot; the caller
 * checks bounds. */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void bytes_put_le16(void *to, uint16_t value) {
  value = htole16(value);
  memcpy(to, &value, sizeof value);
}

static inline void bytes_put_le32(void *to, uint32_t value) {
  value = htole32(value);
  memcpy(to, &value, sizeof value);
}

static inline void bytes_put_le64(void *to, uint64_t value) {
  value = htole64(value);
  memcpy(to, &value, sizeof value);
}

static inline uint16_t bytes_get_le16(const void *from) {
  uint16_t value;
  memcpy(&value, from, sizeof value);
  return le16toh(value);
}

static inline uint32_t bytes_get_le32(const void *from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return le32toh(value);
}

static inline uint64_t bytes_get_le64(const void *from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return le64toh(value);
}

/* Copies upwards, in words of 8 bytes where `to` is aligned, each stored whole and none before
 * those below it. NCCL's LL and LL128 kernels read a buffer while it is being filled: LL reads any
 * 8 bytes whose flag is set, LL128 treats a line of 128 bytes as complete when its last 8 are
 * (NVIDIA/nccl src/device/prims_ll.h, prims_ll128.h at v2.29.7-1). memcpy guarantees neither. */
static inline void bytes_copy_upwards(void *to, const void *from, size_t count) {
  uint8_t *out = (uint8_t *)to;
  const uint8_t *in = (const uint8_t *)from;
  for (; count > 0 && (uintptr_t)out % 8 != 0; count--) {
    __atomic_store_n(out++, *in++, __ATOMIC_RELEASE);
  }
  for (; count >= 8; count -= 8, in += 8, out += 8) {
    uint64_t word;
    memcpy(&word, in, sizeof word);
    __atomic_store_n((uint64_t *)(void *)out, word, __ATOMIC_RELEASE);
  }
  for (; count > 0; count--) {
    __atomic_store_n(out++, *in++, __ATOMIC_RELEASE);
  }
}

#endif
