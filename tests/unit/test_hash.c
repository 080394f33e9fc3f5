/* SPDX-License-Identifier: Apache-2.0 */
/* Published test vectors; every length and alignment against the tables. */
#include "common/hash.h"

#include <string.h>

#include "common/hex.h"
#include "tests/lib/unit.h"

/* RFC 3720 B.4, in the order of its table, and the check value of the CRC catalogue. */
UNIT_TEST(crc32c_vectors) {
  unsigned char bytes[32];
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(hash_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
  memset(bytes, 0xff, sizeof bytes);
  assert_int_equal(hash_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
  for (unsigned char i = 0; i < 32; i++) {
    bytes[i] = i;
  }
  assert_int_equal(hash_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
  for (unsigned char i = 0; i < 32; i++) {
    bytes[i] = (unsigned char)(31 - i);
  }
  assert_int_equal(hash_crc32c(0, bytes, sizeof bytes), 0x113fdb5c);
  assert_int_equal(hash_crc32c(0, "123456789", 9), 0xe3069283);
  assert_int_equal(hash_crc32c(0, "", 0), 0);
}

static void fill(unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    bytes[i] = (unsigned char)(i * 167 + i / 251 * 13 + 7);
  }
}

static uint32_t by_table(uint32_t crc, const void *bytes, size_t count) {
  const struct hash_crc32c_form *form = NULL;
  for (size_t i = 0; hash_crc32c_form(i); i++) {
    form = hash_crc32c_form(i);
  }
  assert_string_equal(form->name, "table");
  return form->run(crc, bytes, count);
}

/* The dispatcher and every form that this processor has give the same. */
static void check_all(uint32_t crc, const void *bytes, size_t count) {
  uint32_t expected = by_table(crc, bytes, count);
  assert_int_equal(hash_crc32c(crc, bytes, count), expected);
  for (size_t i = 0; hash_crc32c_form(i + 1); i++) {
    if (hash_crc32c_form(i)->is_usable()) {
      assert_int_equal(hash_crc32c_form(i)->run(crc, bytes, count), expected);
    }
  }
}

/* Every length up to beyond a few short blocks, at every alignment; then around the places where
 * the long blocks begin and end. */
UNIT_TEST(all_forms_agree) {
  enum { SHORT = 3 * 256, LONG = 3 * 4096, MOST = 3 * LONG + 64 };
  static unsigned char bytes[MOST + 8];
  fill(bytes, sizeof bytes);
  for (size_t at = 0; at < 8; at++) {
    for (size_t count = 0; count <= 3 * SHORT + 17; count += at == 0 ? 1 : 7) {
      check_all(5, bytes + at, count);
    }
    for (size_t blocks = 1; blocks <= 3; blocks++) {
      for (size_t extra = 0; extra < 80; extra++) {
        check_all(~0u, bytes + at, blocks * LONG + extra - 16);
      }
    }
  }
  for (size_t i = 0; hash_crc32c_form(i); i++) {
    const struct hash_crc32c_form *form = hash_crc32c_form(i);
    print_message("# %s%s\n", form->name, form->is_usable() ? "" : ": not on this processor");
  }
}

/* By the table, with which the other forms agree after any other bytes, too. */
UNIT_TEST(crc32c_goes_on_where_it_stopped) {
  const char text[] = "a chunk that arrives in two pieces";
  uint32_t whole = by_table(0, text, sizeof text);
  for (size_t split = 0; split <= sizeof text; split++) {
    assert_int_equal(by_table(by_table(0, text, split), text + split, sizeof text - split), whole);
  }
}

static void assert_hex(const uint8_t *digest, const char *hex) {
  char text[2 * HASH_SHA256_BYTES + 1];
  hex_write(digest, HASH_SHA256_BYTES, text);
  assert_string_equal(text, hex);
}

/* RFC 5869, test cases 1 and 2; the second has a key of HMAC that is longer than a block. */
UNIT_TEST(hkdf_vectors) {
  uint8_t secret[80], salt[80], info[80], key[HASH_SHA256_BYTES], out[96];
  memset(secret, 0x0b, 22);
  for (uint8_t i = 0; i < 13; i++) {
    salt[i] = i;
    info[i] = (uint8_t)(0xf0 + i);
  }
  hash_hkdf_extract(salt, 13, secret, 22, key);
  assert_hex(key, "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  hash_hkdf_expand(key, info, 10, out, 42);
  assert_hex(out, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  assert_memory_equal(out + 32, "\x34\x00\x72\x08\xd5\xb8\x87\x18\x58\x65", 10);
  for (uint8_t i = 0; i < 80; i++) {
    secret[i] = i;
    salt[i] = (uint8_t)(0x60 + i);
    info[i] = (uint8_t)(0xb0 + i);
  }
  hash_hkdf_extract(salt, 80, secret, 80, key);
  hash_hkdf_expand(key, info, 80, out, 82);
  assert_hex(out, "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c");
  assert_hex(out + 32, "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71");
}

/* FIPS 180-2, appendix B.3; what is hashed in pieces; lengths about a block's end, by sha256sum of
 * zeros. */
UNIT_TEST(sha256_of_every_length_about_a_block) {
  static const struct {
    size_t zeros;
    const char *digest;
  } known[] = {
    { 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { 55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7" },
    { 56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb" },
    { 63, "c7723fa1e0127975e49e62e753db53924c1bd84b8ac1ac08df78d09270f3d971" },
    { 64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b" },
    { 65, "98ce42deef51d40269d542f5314bef2c7468d401ad5d85168bfab4c0108f75f7" },
    { 119, "f616b0d54e78571a9611f343c9f8e022e859e920381ab0e4d3da01e193a7bd7e" },
    { 120, "6edd9f6f9cc92cded36e6c4a580933f9c9f1b90562b46903b806f21902a1a54f" },
    { 128, "38723a2e5e8a17aa7950dc008209944e898f69a7bd10a23c839d341e935fd5ca" },
  };
  static uint8_t zeros[128];
  uint8_t digest[HASH_SHA256_BYTES], again[HASH_SHA256_BYTES];
  struct hash_sha256 hash;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    hash_sha256(zeros, known[i].zeros, digest);
    assert_hex(digest, known[i].digest);
    for (size_t split = 0; split <= known[i].zeros; split++) {
      hash_sha256_init(&hash);
      hash_sha256_update(&hash, zeros, split);
      hash_sha256_update(&hash, zeros, known[i].zeros - split);
      hash_sha256_final(&hash, again);
      assert_memory_equal(again, digest, sizeof digest);
    }
  }
  char many[1000];
  memset(many, 'a', sizeof many);
  hash_sha256_init(&hash);
  for (int i = 0; i < 1000; i++) {
    hash_sha256_update(&hash, many, sizeof many);
  }
  hash_sha256_final(&hash, digest);
  assert_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

UNIT_TEST(comparison_sees_every_byte) {
  uint8_t a[HASH_SHA256_BYTES] = { 0 };
  uint8_t b[HASH_SHA256_BYTES] = { 0 };
  assert_true(hash_is_equal(a, b, sizeof a));
  for (size_t i = 0; i < sizeof a; i++) {
    b[i] = 0x10;
    assert_false(hash_is_equal(a, b, sizeof a));
    b[i] = 0;
  }
  assert_true(hash_is_equal(a, b, 0));
}
