/* SPDX-License-Identifier: Apache-2.0 */
/* What happens on the way: bits that change are found and repaired with STRATUS_CHECKSUM=1 or
 * STRATUS_ENCRYPT=on; with the latter, nobody on the way sees data. STRATUS_COMPRESS=on sends fewer
 * bytes. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/connection/connection_snapshot.h"
#include "net_plugin/connection/connection_state.h"
#include "net_plugin/setup/handle.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"
#include "tests/lib/unit.h"

static void set_two(const char *one, const char *other) {
  char words[128];
  snprintf(words, sizeof words, "%s%s%s", one, other ? " " : "", other ? other : "");
  pair_set_parameters(words);
}

#define TEST(name) UNIT_TEST_WITH(name, pair_set_up, pair_tear_down)

/* A pair whose lanes all go through a proxy. Each side reads its parameters when the handshake
 * comes to it: the dialling one when it begins to connect, the listening one while it answers. */
static struct pair pair_through(const struct proxy_plan *plan, const char *dialling,
                                const char *listening, const char *both, struct proxy **proxy) {
  struct proxy_plan held = *plan;
  held.is_held = true;
  set_two(dialling, both);
  struct meeting meeting = meeting_open(AF_INET);
  struct sockaddr_storage *address = &meeting.handle.addresses[0];
  *proxy = proxy_start(address, &held, address);
  handle_encode(&meeting.handle, meeting.bytes);
  assert_int_equal(meeting_connect(&meeting), 0);
  assert_null(meeting.pair.sender);
  set_two(listening, both);
  proxy_let_pass(*proxy);
  struct pair pair = meeting_pair(&meeting);
  meeting_close(&meeting);
  return pair;
}

static void exchange_with_flips(const char *dialling, const char *listening, const char *both) {
  struct proxy *proxy;
  struct proxy_plan plan = { .flip_every_bytes = 1u << 20 };
  struct pair pair = pair_through(&plan, dialling, listening, both, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, NULL);
  struct proxy_result result = proxy_stop(proxy);
  struct connection_snapshot seen;
  engine_lock(pair.receiver->engine);
  connection_snapshot(pair.receiver, clock_now_ns(), &seen);
  engine_unlock(pair.receiver->engine);
  assert_in_range(seen.checksum_errors, 1, result.flipped);
  pair_close(pair);
  assert_in_range(result.flipped, 2, 1000); /* one for each MiB: few where chunks are compressed */
  /* But for those in a chunk that had landed from another lane: that is read and forgotten. */
  assert_in_range(result.found, result.flipped * 3 / 4, result.flipped);
}

TEST(every_flip_is_found_and_repaired) {
  exchange_with_flips("STRATUS_CHECKSUM=1", "STRATUS_CHECKSUM=1", NULL);
  assert_true(log_capture_find("brought damaged bytes") >= 1);
  assert_true(log_capture_find("127.0.0.1:") >= 1);
}

/* How often the beginning of a message passed in clear. */
static unsigned seen_on_the_way(const char *variable) {
  uint8_t pattern[24];
  content_fill(7, pattern, sizeof pattern);
  struct proxy *proxy;
  struct proxy_plan plan = { .pattern = pattern, .pattern_bytes = sizeof pattern };
  struct pair pair = pair_through(&plan, variable, variable, NULL, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  struct proxy_result result = proxy_stop(proxy);
  pair_close(pair);
  assert_true(result.bytes > 5000000);
  return result.seen;
}

/* Before others that encrypt: it is told once in a process. */
TEST(sealed_data_is_not_seen) {
  assert_true(seen_on_the_way("STRATUS_ENCRYPT=off") > 0);
  assert_int_equal(seen_on_the_way("STRATUS_ENCRYPT=on"), 0);
  assert_int_equal(log_capture_find("data between hosts is encrypted with"), 1);
  assert_int_equal(log_capture_find("STRATUS_ENCRYPT=on without STRATUS_SECRET"), 1);
}

TEST(every_flip_of_sealed_data_is_found) {
  exchange_with_flips("STRATUS_ENCRYPT=on", "STRATUS_ENCRYPT=on", NULL);
}

/* What passes of the same messages, with these settings. */
static uint64_t bytes_on_the_way(const char *dialling, const char *listening, const char *both) {
  struct proxy *proxy;
  struct proxy_plan plan = { 0 };
  content_set_codable(true);
  struct pair pair = pair_through(&plan, dialling, listening, both, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, NULL);
  struct proxy_result result = proxy_stop(proxy);
  pair_close(pair);
  content_set_codable(false);
  return result.bytes;
}

/* One byte in four is the same, so a quarter less of the large ones passes, where both want it; on
 * a busy machine some of them once more, as they are. */
TEST(compressed_chunks_are_shorter) {
  static const char on[] = "STRATUS_COMPRESS=on", off[] = "STRATUS_COMPRESS=off";
  static const char *const also[] = { NULL, "STRATUS_ENCRYPT=on", "STRATUS_CHECKSUM=1" };
  for (size_t i = 0; i < sizeof also / sizeof *also; i++) {
    uint64_t raw = bytes_on_the_way(off, off, also[i]);
    uint64_t coded = bytes_on_the_way(on, on, also[i]);
    assert_in_range(coded, raw * 70 / 100, raw * 85 / 100);
    assert_in_range(bytes_on_the_way(on, off, also[i]), raw * 99 / 100, raw * 101 / 100);
    assert_in_range(bytes_on_the_way(off, on, also[i]), raw * 99 / 100, raw * 101 / 100);
  }
}

TEST(every_flip_of_coded_data_is_found) {
  content_set_codable(true);
  exchange_with_flips("STRATUS_CHECKSUM=1", "STRATUS_CHECKSUM=1", "STRATUS_COMPRESS=on");
  exchange_with_flips("STRATUS_ENCRYPT=on", "STRATUS_ENCRYPT=on", "STRATUS_COMPRESS=on");
  content_set_codable(false);
}

/* Where a host's word for protection is not understood, or cannot be kept, nobody can connect to
 * it, and it sends nothing: not one byte goes through the proxy. */
static void refuses_to_connect(const char *variable, const char *says) {
  struct proxy_plan plan = { 0 };
  pair_set_parameters(NULL);
  struct meeting meeting = meeting_open(AF_INET);
  struct sockaddr_storage *address = &meeting.handle.addresses[0];
  struct proxy *proxy = proxy_start(address, &plan, address);
  handle_encode(&meeting.handle, meeting.bytes);
  pair_set_parameters(variable);
  struct listener *none;
  uint8_t unused[HANDLE_BYTES];
  for (int i = 0; i < 2; i++) {
    log_capture_start();
    assert_int_equal(i ? meeting_connect(&meeting) : listener_open(meeting.nics, 1, unused, &none),
                     -EACCES);
    assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 1);
    if (!strstr(log_capture_text(0), says) || !strstr(log_capture_text(0), "no connection")) {
      fail_msg("%s: %s", variable, log_capture_text(0));
    }
  }
  assert_null(meeting.pair.sender);
  assert_int_equal(proxy_stop(proxy).bytes, 0);
  meeting_close(&meeting);
}

/* Which words and names are not understood: test_param.c. */
TEST(bad_protection_ends_listen_and_connect) {
  static const struct {
    const char *variable, *says;
  } cases[] = {
    { "STRATUS_ENCRYPT=bogus", "STRATUS_ENCRYPT=\"bogus\" is not accepted; it takes off|on. " },
    { "STRATUS_CHECKSUM=crc", "STRATUS_CHECKSUM=\"crc\" is not accepted; it takes 0|1|off|on|" },
    { "STRATUS_SECRET=", "STRATUS_SECRET is set to nothing" },
    { "STRATUS_SECRET_FILE=/nonexistent", "STRATUS_SECRET_FILE=/nonexistent: No such file" },
    { "STRATUS_ENCRYPTION=on", "STRATUS_ENCRYPTION is not a variable of stratus; STRATUS_ENCRYPT" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    refuses_to_connect(cases[i].variable, cases[i].says);
  }
}

/* A pair whose sender is at 127.0.0.2, and dials this; NULL: what the handle says. */
static struct pair pair_by(struct meeting *meeting, const struct sockaddr_storage *address) {
  struct sockaddr_in *dialling = (struct sockaddr_in *)&meeting->nics[0].address;
  dialling->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  meeting->handle.addresses[0] = address ? *address : meeting->handle.addresses[0];
  handle_encode(&meeting->handle, meeting->bytes);
  struct pair pair = meeting_pair(meeting);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 12, NULL);
  return pair;
}

/* As a sidecar does: the flows come from its address, not from the process's own. Of each process
 * that is told once. */
TEST(who_dials_in_the_peers_place_is_told) {
  struct proxy_plan plan = { 0 };
  struct sockaddr_storage proxied;
  struct meeting meeting = meeting_open(AF_INET);
  struct proxy *proxy = proxy_start(&meeting.handle.addresses[0], &plan, &proxied);
  struct pair direct = pair_by(&meeting, NULL);
  assert_int_equal(log_capture_find("dials in place of"), 0);
  struct pair one = pair_by(&meeting, &proxied), other = pair_by(&meeting, &proxied);
  meeting_close(&meeting);
  proxy_stop(proxy);
  pair_close(direct);
  pair_close(one);
  pair_close(other);
  assert_int_equal(log_capture_find("listens: a proxy or address translation?"), 1);
  assert_int_equal(log_capture_find("dials in place of 127.0.0.2:"), 1);
}

TEST(sealed_lanes_survive_cuts) {
  pair_set_parameters("STRATUS_ENCRYPT=on");
  struct pair pair = pair_make(AF_INET6);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 36, pair_cut_some);
  pair_close(pair);
}
