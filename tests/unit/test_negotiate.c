/* SPDX-License-Identifier: Apache-2.0 */
/* What both sides agree on, and that both agree on the same. */
#include "net_plugin/setup/settings.h"

#include "net_plugin/codec/codec.h"
#include "tests/lib/unit.h"

static struct settings settings_some(void) {
  return (struct settings){ .policy = { .lanes = 16,
                                        .first_lanes = 4,
                                        .chunk_bytes = 512 << 10,
                                        .usual_chunk_bytes = 128 << 10,
                                        .learns_lanes = true,
                                        .reconnects_slow_lanes = true,
                                        .compress = POLICY_COMPRESS_AUTO },
                            .params = { .lanes = 16,
                                        .chunk_bytes = 512 << 10,
                                        .eager_bytes = 16 << 10,
                                        .codec = CODEC_VERSION },
                            .link_timeout_ns = 7,
                            .stopped_timeout_ns = 8 };
}

static struct conn_params dialler_some(void) {
  return settings_some().params;
}

/* What the listening side agrees to; checks that the dialling side makes the same of its reply, and
 * that neither's order matters. */
static struct conn_params agree(const struct conn_params *dialled, const struct settings *listener,
                                unsigned listener_keys) {
  struct conn_params here = settings_of_listener(listener, listener_keys);
  struct conn_params agreed = params_agreed(&here, dialled),
                     swapped = params_agreed(dialled, &here);
  union handshake_message said = { .reply.params = agreed };
  handshake_finish(&said, HANDSHAKE_REPLY);
  assert_int_equal(handshake_check(&said, HANDSHAKE_REPLY), 0);
  struct conn_params there = params_agreed(dialled, &said.reply.params);
  const struct conn_params *others[] = { &swapped, &there };
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(agreed.lanes, others[i]->lanes);
    assert_int_equal(agreed.chunk_bytes, others[i]->chunk_bytes);
    assert_int_equal(agreed.eager_bytes, others[i]->eager_bytes);
    assert_int_equal(agreed.ciphers, others[i]->ciphers);
    assert_int_equal(agreed.wants_checksums, others[i]->wants_checksums);
    assert_int_equal(agreed.remote_keys, others[i]->remote_keys);
    assert_int_equal(agreed.codec, others[i]->codec);
  }
  return agreed;
}

UNIT_TEST(the_lesser_of_both) {
  static const uint32_t bytes[] = { 0, 1, 8 << 10, 16 << 10, 64 << 10 };
  for (unsigned i = 0; i < 5 * 5; i++) {
    struct conn_params dialled = dialler_some();
    struct settings listener = settings_some();
    dialled.eager_bytes = bytes[i % 5];
    listener.params.eager_bytes = bytes[i / 5];
    assert_int_equal(agree(&dialled, &listener, 0).eager_bytes,
                     bytes[i % 5 < i / 5 ? i % 5 : i / 5]);
  }
}

UNIT_TEST(one_cipher_that_both_have) {
  static const struct {
    uint8_t dialler, listener, agreed;
  } cases[] = { { 0, 0, 0 }, { 0, 6, 0 }, { 6, 6, 2 }, { 6, 4, 4 }, { 2, 4, 0 } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct conn_params dialled = dialler_some();
    struct settings listener = settings_some();
    dialled.ciphers = cases[i].dialler;
    listener.params.ciphers = cases[i].listener;
    struct conn_params agreed = agree(&dialled, &listener, 0);
    assert_int_equal(agreed.ciphers, cases[i].agreed);
    assert_int_equal(params_cipher(&agreed), cases[i].agreed / 2);
  }
}

UNIT_TEST(checksums_where_one_side_wants_them) {
  for (unsigned i = 0; i < 4; i++) {
    struct conn_params dialled = dialler_some();
    struct settings listener = settings_some();
    dialled.wants_checksums = i & 1;
    listener.params.wants_checksums = i >> 1 & 1;
    assert_int_equal(agree(&dialled, &listener, 0).wants_checksums, i != 0);
  }
}

UNIT_TEST(a_codec_of_the_same_version) {
  struct conn_params dialled = dialler_some();
  struct settings listener = settings_some();
  assert_int_equal(agree(&dialled, &listener, 0).codec, CODEC_VERSION);
  listener.policy.compress = POLICY_COMPRESS_OFF;
  assert_int_equal(agree(&dialled, &listener, 0).codec, 0);
  struct conn_params said = dialled;
  said.codec = CODEC_VERSION + 1;
  assert_int_equal(params_agreed(&dialled, &said).codec, 0);
}

UNIT_TEST(queue_pairs_carry_nothing_compressed) {
  for (unsigned i = 0; i < 9; i++) {
    struct conn_params dialled = dialler_some();
    struct settings listener = settings_some();
    unsigned here = i % 3, there = i / 3;
    dialled.remote_keys = (uint8_t)there;
    struct conn_params agreed = agree(&dialled, &listener, here);
    assert_int_equal(agreed.remote_keys, here < there ? here : there);
    assert_int_equal(agreed.codec, here && there ? 0 : CODEC_VERSION);
  }
}

UNIT_TEST(a_link_of_either_role) {
  struct conn_params dialled = dialler_some();
  struct settings settings = settings_some();
  dialled.wants_checksums = 1;
  struct conn_params agreed = agree(&dialled, &settings, 0);
  struct link_config sender = settings_of_link(LINK_SENDER, &agreed, &settings, 2);
  struct link_config receiver = settings_of_link(LINK_RECEIVER, &agreed, &settings, 0);
  for (unsigned i = 0; i < 2; i++) {
    const struct link_config *link = i ? &receiver : &sender;
    assert_int_equal(link->role, i ? LINK_RECEIVER : LINK_SENDER);
    assert_int_equal(link->policy.lanes, 16);
    assert_int_equal(link->policy.chunk_bytes, 512 << 10);
    assert_int_equal(link->eager_bytes, 16 << 10);
    assert_int_equal(link->eager_slots, 32);
    assert_true(link->wants_checksums);
    assert_int_equal(link->remote_keys, 0);
    assert_int_equal(link->timeout_ns, 7);
    assert_int_equal(link->stopped_timeout_ns, 8);
    assert_true(link_memory_bytes(link) > 0);
  }
  assert_int_equal(sender.policy.compress, POLICY_COMPRESS_AUTO);
  assert_int_equal(receiver.policy.compress, POLICY_COMPRESS_ON);
  assert_int_equal(sender.policy.usual_chunk_bytes, 128 << 10);
  assert_int_equal(sender.policy.paths, 2);
  assert_true(sender.policy.learns_lanes && sender.policy.reconnects_slow_lanes);
  agreed.codec = 0;
  assert_int_equal(settings_of_link(LINK_SENDER, &agreed, &settings, 2).policy.compress,
                   POLICY_COMPRESS_OFF);
  assert_int_equal(settings_of_link(LINK_RECEIVER, &agreed, &settings, 0).policy.compress,
                   POLICY_COMPRESS_OFF);
}

UNIT_TEST(a_first_lane_for_each_path) {
  struct settings settings = settings_some(); /* first_lanes 4 */
  struct conn_params agreed = { .lanes = 16 };
  assert_int_equal(settings_of_link(LINK_SENDER, &agreed, &settings, 2).policy.first_lanes, 4);
  assert_int_equal(settings_of_link(LINK_SENDER, &agreed, &settings, 8).policy.first_lanes, 8);
  agreed.lanes = 3;
  assert_int_equal(settings_of_link(LINK_SENDER, &agreed, &settings, 8).policy.first_lanes, 3);
}
