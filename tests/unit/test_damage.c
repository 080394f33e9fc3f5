/* SPDX-License-Identifier: Apache-2.0 */
/* What happens on the way: bits that change are found and repaired with STRATUS_CHECKSUM=1 or
 * STRATUS_ENCRYPT=on; with the latter, nobody on the way sees data. */
#include <netinet/in.h>

#include "common/param.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"
#include "tests/lib/unit.h"

static void set(const char *variable) {
  char *environment[] = { (char *)(uintptr_t)variable, NULL };
  param_load(environment);
}

/* A pair whose lanes all go through a proxy. Each side reads its parameters when the handshake
 * comes to it: the dialling one when it begins to connect, the listening one while it answers. */
static struct pair pair_through(const struct proxy_plan *plan, const char *dialling,
                                const char *listening, struct proxy **proxy) {
  struct nic nic = pair_loopback(AF_INET);
  uint8_t bytes[HANDLE_BYTES];
  struct listener *listener;
  struct connection *sender = NULL;
  struct handle handle;
  struct proxy_plan held = *plan;
  held.is_held = true;
  set(dialling);
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), 0);
  assert_int_equal(handle_decode(bytes, &handle), 0);
  *proxy = proxy_start(&handle.addresses[0], &held, &handle.addresses[0]);
  handle_encode(&handle, bytes);
  assert_int_equal(connector_connect(&nic, 1, -1, bytes, &sender), 0);
  assert_null(sender);
  set(listening);
  proxy_let_pass(*proxy);
  struct pair pair = pair_connect(&nic, bytes, listener);
  listener_close(listener);
  return pair;
}

static void exchange_with_flips(const char *dialling, const char *listening) {
  struct proxy *proxy;
  struct proxy_plan plan = { .flip_every_bytes = 1u << 20 };
  struct pair pair = pair_through(&plan, dialling, listening, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, NULL);
  struct proxy_result result = proxy_stop(proxy);
  pair_close(pair);
  assert_in_range(result.flipped, 5, 1000);
  assert_int_equal(result.found, result.flipped);
}

static void every_flip_is_found_and_repaired(void **state) {
  (void)state;
  exchange_with_flips("STRATUS_CHECKSUM=1", "STRATUS_CHECKSUM=1");
  assert_true(log_capture_find("brought damaged bytes") >= 1);
  assert_true(log_capture_find("127.0.0.1:") >= 1);
}

static void one_side_that_wants_checksums_suffices(void **state) {
  (void)state;
  exchange_with_flips("STRATUS_CHECKSUM=1", "STRATUS_CHECKSUM=0");
  exchange_with_flips("STRATUS_CHECKSUM=0", "STRATUS_CHECKSUM=1");
}

static void every_flip_of_sealed_data_is_found(void **state) {
  (void)state;
  exchange_with_flips("STRATUS_ENCRYPT=on", "STRATUS_ENCRYPT=on");
}

/* How often the beginning of a message passed in clear. */
static unsigned seen_on_the_way(const char *variable) {
  uint8_t pattern[24];
  content_fill(7, pattern, sizeof pattern);
  struct proxy *proxy;
  struct proxy_plan plan = { .pattern = pattern, .pattern_bytes = sizeof pattern };
  struct pair pair = pair_through(&plan, variable, variable, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 24, NULL);
  struct proxy_result result = proxy_stop(proxy);
  pair_close(pair);
  assert_true(result.bytes > 5000000);
  return result.seen;
}

static void sealed_data_is_not_seen(void **state) {
  (void)state;
  assert_true(seen_on_the_way("STRATUS_ENCRYPT=off") > 0);
  assert_int_equal(seen_on_the_way("STRATUS_ENCRYPT=on"), 0);
  assert_int_equal(log_capture_find("data between hosts is encrypted with"), 1);
}

static void sealed_lanes_survive_cuts(void **state) {
  (void)state;
  set("STRATUS_ENCRYPT=on");
  int families[] = { AF_INET, AF_INET6 };
  for (int i = 0; i < 2; i++) {
    struct pair pair = pair_make(families[i]);
    pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, NULL);
    pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, pair_cut_some);
    pair_close(pair);
  }
}

static int stop(void **state) {
  (void)state;
  setup_stop();
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_flip_is_found_and_repaired, log_capture_set_up, stop),
    cmocka_unit_test_setup_teardown(one_side_that_wants_checksums_suffices, log_capture_set_up,
                                    stop),
    cmocka_unit_test_setup_teardown(sealed_data_is_not_seen, log_capture_set_up, stop),
    cmocka_unit_test_setup_teardown(every_flip_of_sealed_data_is_found, log_capture_set_up, stop),
    cmocka_unit_test_setup_teardown(sealed_lanes_survive_cuts, log_capture_set_up, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
