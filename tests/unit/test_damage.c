/* SPDX-License-Identifier: Apache-2.0 */
/* Bits that change on the way: with STRATUS_CHECKSUM=1 each is found and repaired. */
#include <netinet/in.h>

#include "common/param.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"
#include "tests/lib/unit.h"

/* A pair whose lanes all go through a proxy. */
static struct pair pair_through(const struct proxy_plan *plan, struct proxy **proxy) {
  struct nic nic = pair_loopback(AF_INET);
  uint8_t bytes[HANDLE_BYTES];
  struct listener *listener;
  struct handle handle;
  assert_int_equal(listener_open(&nic, 1, bytes, &listener), 0);
  assert_int_equal(handle_decode(bytes, &handle), 0);
  *proxy = proxy_start(&handle.addresses[0], plan, &handle.addresses[0]);
  handle_encode(&handle, bytes);
  struct pair pair = pair_connect(&nic, bytes, listener);
  listener_close(listener);
  return pair;
}

static void every_flip_is_found_and_repaired(void **state) {
  (void)state;
  char *environment[] = { "STRATUS_CHECKSUM=1", NULL };
  param_load(environment);
  struct proxy *proxy;
  struct proxy_plan plan = { .flip_every_bytes = 1u << 20 };
  struct pair pair = pair_through(&plan, &proxy);
  pair_exchange(pair, pair_sizes, PAIR_SIZES, 60, NULL);
  struct proxy_result result = proxy_stop(proxy);
  pair_close(pair);
  assert_in_range(result.flipped, 5, 1000);
  assert_int_equal(result.found, result.flipped);
  assert_true(log_capture_find("brought damaged bytes") >= 1);
  assert_true(log_capture_find("127.0.0.1:") >= 1);
}

static int start(void **state) {
  (void)state;
  log_capture_start();
  return 0;
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
    cmocka_unit_test_setup_teardown(every_flip_is_found_and_repaired, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
