/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: little-endian integers at any alignment, for wire frames and handles.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot; the caller has checked that the bytes are there. */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <endian.h>
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

#endif
