/* SPDX-License-Identifier: Apache-2.0 */
/* Which interfaces are used: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY and NCCL_COMM_ID must mean what
 * they mean to NCCL (src/misc/socket.cc:190-231 and src/os/linux.cc:379-524 at v2.30.7). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "net_plugin/plugin/interface.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

enum { RUNNING = IFF_UP | IFF_RUNNING, LIST_MAX = 32 };

struct list {
  struct interface items[LIST_MAX];
  size_t count;
};

/* `prefix` is the length of the netmask in bits. */
static void add(struct list *list, const char *name, const char *address, unsigned prefix,
                unsigned flags) {
  struct interface *to = &list->items[list->count++];
  *to = (struct interface){ .flags = flags, .verdict = INTERFACE_OVER_LIMIT };
  snprintf(to->name, sizeof(to->name), "%s", name);
  uint8_t *mask;
  if (strchr(address, ':')) {
    struct sockaddr_in6 *sa = (struct sockaddr_in6 *)&to->address;
    sa->sin6_family = to->netmask.ss_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, address, &sa->sin6_addr), 1);
    mask = ((struct sockaddr_in6 *)&to->netmask)->sin6_addr.s6_addr;
  } else {
    struct sockaddr_in *sa = (struct sockaddr_in *)&to->address;
    sa->sin_family = to->netmask.ss_family = AF_INET;
    assert_int_equal(inet_pton(AF_INET, address, &sa->sin_addr), 1);
    mask = (uint8_t *)&((struct sockaddr_in *)&to->netmask)->sin_addr;
  }
  for (unsigned bit = 0; bit < prefix; bit++) {
    mask[bit / 8] = (uint8_t)(mask[bit / 8] | 0x80 >> bit % 8);
  }
}

/* The names that are chosen, with a comma after each, in order. */
static const char *chosen(struct list *list, const char *ifname, const char *family,
                          const char *comm_id) {
  static char text[512];
  struct interface_wishes wishes = { .ifname = ifname, .family = family, .comm_id = comm_id };
  size_t count = interface_select(list->items, list->count, &wishes);
  text[0] = '\0';
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].verdict == INTERFACE_CHOSEN) {
      strcat(strcat(text, list->items[i].name), ",");
      count--;
    }
  }
  assert_int_equal(count, 0);
  return text;
}

/* As getifaddrs orders them: all IPv4 first. */
static struct list cloud_host(void) {
  struct list list = { 0 };
  add(&list, "lo", "127.0.0.1", 8, RUNNING);
  add(&list, "eth0", "10.0.0.1", 24, RUNNING);
  add(&list, "eth1", "10.1.0.1", 24, RUNNING);
  add(&list, "eth10", "10.2.0.1", 24, RUNNING);
  add(&list, "eth2", "10.3.0.1", 24, IFF_UP);
  add(&list, "docker0", "172.17.0.1", 16, RUNNING);
  add(&list, "virbr0", "192.168.122.1", 24, RUNNING);
  add(&list, "lo", "::1", 128, RUNNING);
  add(&list, "eth0", "fd00::1", 64, RUNNING);
  add(&list, "eth0", "fe80::1", 64, RUNNING);
  add(&list, "eth3", "fe80::3", 64, RUNNING);
  return list;
}

LOG_CAPTURE_TEST(by_default_all_but_lo_docker_virbr) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,eth1,eth10,eth3,");
  assert_int_equal(list.items[0].verdict, INTERFACE_LESS_PREFERRED);
  assert_int_equal(list.items[4].verdict, INTERFACE_NOT_RUNNING);
  assert_int_equal(list.items[5].verdict, INTERFACE_LESS_PREFERRED);
  assert_int_equal(list.items[7].verdict, INTERFACE_LOOPBACK_ADDRESS);
  assert_int_equal(list.items[8].verdict, INTERFACE_SECOND_ADDRESS);
}

LOG_CAPTURE_TEST(ib_is_preferred) {
  struct list list = cloud_host();
  add(&list, "ibs3", "10.9.0.1", 24, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "ibs3,");
  assert_int_equal(list.items[1].verdict, INTERFACE_LESS_PREFERRED);
  /* The user's word counts more. */
  assert_string_equal(chosen(&list, "eth0", NULL, NULL), "eth0,");
}

LOG_CAPTURE_TEST(names_are_prefixes) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, "eth", NULL, NULL), "eth0,eth1,eth10,eth3,");
  assert_string_equal(chosen(&list, "eth1", NULL, NULL), "eth1,eth10,");
  assert_string_equal(chosen(&list, "eth1,docker", NULL, NULL), "eth1,eth10,docker0,");
  assert_string_equal(chosen(&list, "eth1:5,docker", NULL, NULL), "eth1,eth10,docker0,");
  assert_int_equal(list.items[1].verdict, INTERFACE_NOT_NAMED);
  assert_string_equal(chosen(&list, "wlan", NULL, NULL), "");
  assert_string_equal(chosen(&list, "lo", NULL, NULL), "lo,");
}

LOG_CAPTURE_TEST(equals_sign_asks_for_the_whole_name) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, "=eth1", NULL, NULL), "eth1,");
  assert_string_equal(chosen(&list, "=eth", NULL, NULL), "");
  assert_string_equal(chosen(&list, "=eth1,eth0", NULL, NULL), "eth0,eth1,");
}

LOG_CAPTURE_TEST(caret_excludes) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, "^eth1,docker", NULL, NULL), "lo,eth0,virbr0,eth3,");
  assert_string_equal(chosen(&list, "^=eth1,docker", NULL, NULL),
                      "lo,eth0,eth10,docker0,virbr0,eth3,");
  /* Nothing named and excluded: nothing is left. */
  assert_string_equal(chosen(&list, "^,", NULL, NULL), "");
}

LOG_CAPTURE_TEST(one_character_is_no_wish) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, "^", NULL, NULL), "eth0,eth1,eth10,eth3,");
  assert_string_equal(chosen(&list, "", NULL, NULL), "eth0,eth1,eth10,eth3,");
}

LOG_CAPTURE_TEST(family_can_be_forced) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, NULL, "AF_INET", NULL), "eth0,eth1,eth10,");
  assert_string_equal(chosen(&list, NULL, "AF_INET6", NULL), "eth0,eth3,");
  assert_int_equal(list.items[8].verdict, INTERFACE_CHOSEN); /* global before link-local */
  assert_int_equal(list.items[1].verdict, INTERFACE_OTHER_FAMILY);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_string_equal(chosen(&list, "eth0", "IPV6", NULL), "eth0,");
  assert_int_equal(list.items[1].verdict, INTERFACE_CHOSEN);
  assert_true(log_capture_find("AF_INET6") > 0);
}

LOG_CAPTURE_TEST(fallbacks_come_in_order) {
  struct list list = { 0 };
  add(&list, "lo", "127.0.0.1", 8, RUNNING);
  add(&list, "virbr0", "192.168.122.1", 24, RUNNING);
  add(&list, "docker0", "172.17.0.1", 16, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "docker0,");
  list.items[2].flags = IFF_UP;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "lo,");
  list.items[0].flags = IFF_UP;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "virbr0,");
  list.items[1].flags = IFF_UP;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "");
  list.count = 0;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "");
}

LOG_CAPTURE_TEST(comm_id_points_at_a_subnet) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, NULL, NULL, "10.1.0.77:5000"), "eth1,");
  assert_int_equal(list.items[1].verdict, INTERFACE_LESS_PREFERRED);
  assert_string_equal(chosen(&list, NULL, NULL, "[fd00::77]:5000"), "eth0,");
  assert_int_equal(list.items[8].verdict, INTERFACE_CHOSEN);
  /* None in that subnet: as if it were not set. */
  assert_string_equal(chosen(&list, NULL, NULL, "10.77.0.1:5000"), "eth0,eth1,eth10,eth3,");
  /* A wish by name comes first. */
  assert_string_equal(chosen(&list, "eth0", NULL, "10.1.0.77:5000"), "eth0,");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_string_equal(chosen(&list, NULL, NULL, "[nonsense:5000"), "eth0,eth1,eth10,eth3,");
  assert_true(log_capture_find("NCCL_COMM_ID") > 0);
}

LOG_CAPTURE_TEST(sixteen_are_taken) {
  struct list list = { 0 };
  for (int i = 0; i < 20; i++) {
    char name[IF_NAMESIZE];
    snprintf(name, sizeof(name), "eth%d", i);
    add(&list, name, "10.0.0.1", 24, RUNNING);
  }
  struct interface_wishes wishes = { 0 };
  assert_int_equal(interface_select(list.items, list.count, &wishes), 16);
  assert_int_equal(list.items[15].verdict, INTERFACE_CHOSEN);
  assert_int_equal(list.items[16].verdict, INTERFACE_OVER_LIMIT);
}

LOG_CAPTURE_TEST(the_system_has_a_loopback) {
  static struct interface items[INTERFACE_MAX];
  int count = interface_list(items);
  bool is_found = false;
  char text[INTERFACE_ADDRESS_TEXT_MAX];
  for (int i = 0; i < count; i++) {
    if (!strcmp(items[i].name, "lo") && items[i].address.ss_family == AF_INET) {
      is_found = true;
      assert_string_equal(interface_address_text(&items[i].address, text), "127.0.0.1");
      assert_int_equal(items[i].netmask.ss_family, AF_INET);
    }
  }
  assert_true(is_found);
}

LOG_CAPTURE_TEST(every_verdict_has_a_text) {
  for (int i = INTERFACE_CHOSEN; i <= INTERFACE_OVER_LIMIT; i++) {
    assert_true(strlen(interface_verdict_text((enum interface_verdict)i)) > 0);
  }
}

UNIT_MAIN(NULL, NULL)
