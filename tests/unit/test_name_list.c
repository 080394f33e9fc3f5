/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's lists of names and words for families mean what they mean to NCCL. */
#include "common/name_list.h"

#include <string.h>

#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static bool takes(const char *rules, const char *name, int port) {
  struct name_list list;
  name_list_parse(&list, "NCCL_IB_HCA", rules, true);
  return name_list_has(&list, name, port);
}

LOG_CAPTURE_TEST(names_are_chosen_as_nccl_does) {
  assert_true(takes(NULL, "mlx5_0", 1));
  assert_true(takes("", "mlx5_0", 1));
  assert_true(takes("mlx5", "mlx5_10", 2));
  assert_false(takes("mlx5", "mlx4_0", 1));
  assert_true(takes("mlx5_1", "mlx5_10", 1)); /* a beginning */
  assert_false(takes("=mlx5_1", "mlx5_10", 1));
  assert_true(takes("=mlx5_1", "mlx5_1", 1));
  assert_true(takes("mlx5_0:1,mlx5_1:2", "mlx5_1", 2));
  assert_false(takes("mlx5_0:1,mlx5_1:2", "mlx5_1", 1));
  assert_false(takes("^mlx5_1", "mlx5_1", 1));
  assert_true(takes("^mlx5_1", "mlx5_2", 1));
  assert_true(takes("^=mlx5_1", "mlx5_10", 1));
  assert_false(takes("^=mlx5_1,mlx5_10", "mlx5_10", 1));
  assert_true(takes("^=mlx5_1:2", "mlx5_1", 1));
  assert_true(takes(",,mlx5_0,", "mlx5_0", 1));
  assert_true(takes("mlx5_0::3,mlx5_1:1:0:2", "mlx5_0", 2)); /* rail and plane are of no concern */
  assert_true(takes("mlx5_0::3,mlx5_1:1:0:2", "mlx5_1", 1));
  assert_false(takes("mlx5_0::3,mlx5_1:1:0:2", "mlx5_1", 2));
  assert_false(takes("^", "mlx5_0", 1));
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

LOG_CAPTURE_TEST(bad_ports_fit_nothing_and_are_told) {
  assert_false(takes("mlx5_0:one", "mlx5_0", 1));
  assert_int_equal(log_capture_find("NCCL_IB_HCA: \"mlx5_0:one\" fits no device: after the colon "
                                    "belongs a port, 1 to 255, as in mlx5_0:1"),
                   1);
  char many[64 * 4 + 1] = "";
  for (int i = 0; i < 64; i++) {
    strcat(many, "aa,");
  }
  struct name_list list;
  name_list_parse(&list, "NCCL_IB_HCA", many, true);
  assert_int_equal(list.count, NAME_LIST_MAX);
  assert_int_equal(log_capture_find("\"aa\" is ignored: at most 32 names"), 32);
}

LOG_CAPTURE_TEST(names_without_ports_have_none) {
  struct name_list list;
  name_list_parse(&list, "NCCL_SOCKET_IFNAME", "=eth0:label,eth1", false);
  assert_true(name_list_has(&list, "eth0", NAME_LIST_ANY_PORT));
  assert_true(name_list_has(&list, "eth1", NAME_LIST_ANY_PORT));
  assert_false(name_list_has(&list, "eth10", NAME_LIST_ANY_PORT));
  /* One that is too long for a name fits nothing; above all, the list is not empty then. */
  char text[200];
  memset(text, 'e', sizeof text);
  text[sizeof text - 1] = '\0';
  name_list_parse(&list, "NCCL_SOCKET_IFNAME", text, false);
  assert_false(name_list_has(&list, "eee", NAME_LIST_ANY_PORT));
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
}

LOG_CAPTURE_TEST(families_are_words) {
  assert_int_equal(name_list_family("NCCL_SOCKET_FAMILY", NULL), AF_UNSPEC);
  assert_int_equal(name_list_family("NCCL_SOCKET_FAMILY", "AF_INET"), AF_INET);
  assert_int_equal(name_list_family("NCCL_SOCKET_FAMILY", "AF_INET6"), AF_INET6);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_int_equal(name_list_family("NCCL_SOCKET_FAMILY", "ipv4"), AF_UNSPEC);
  assert_int_equal(
      log_capture_find("NCCL_SOCKET_FAMILY=ipv4 is ignored: accepted is AF_INET or AF_INET6"), 1);
}
