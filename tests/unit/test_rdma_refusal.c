/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no RDMA is told once in a process, so this test has one of its own. */
#include <errno.h>

#include "common/param.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"
#include "tests/lib/rdma_host.h"
#include "tests/lib/unit.h"

UNIT_TEST(one_line_tells_why_there_is_none) {
  static const struct fake_hca hca = { .name = "fake0", .netdev = "lo", .gids = { "127.0.0.1" } };
  static const size_t sizes[] = { 8, 70000 };
  param_load((char *[]){ NULL });
  rdma_host_start(&hca);
  log_capture_start();
  fake_verbs_fail_calls(FAKE_OPEN_DEVICE, EACCES);
  for (int i = 0; i < 2; i++) {
    struct pair pair = pair_make(AF_INET);
    pair_exchange(pair, sizes, 2, 20, NULL);
    pair_close(pair);
  }
  fake_verbs_fail_calls(FAKE_OPEN_DEVICE, 0);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_int_equal(log_capture_find("fake0 cannot be opened: Permission denied"), 1);
  setup_stop();
  log_capture_stop();
  rdma_host_stop(); /* fails if anything is left */
}

UNIT_MAIN(NULL, NULL)
