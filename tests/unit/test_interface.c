/* SPDX-License-Identifier: Apache-2.0 */
/* Which interfaces are used: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY and NCCL_COMM_ID must mean what
 * they mean to NCCL (src/misc/socket.cc:190-231 and src/os/linux.cc:379-524 at v2.30.7). */
#include <linux/if_addr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/plugin/interface.h"
#include "tests/lib/fake_nic.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

enum { RUNNING = IFF_UP | IFF_RUNNING, LIST_MAX = 600 };

struct list {
  struct interface items[LIST_MAX];
  size_t count;
};

/* `prefix` is the length of the netmask in bits. Interfaces of one name have one index. */
static struct interface *add(struct list *list, const char *name, const char *address,
                             unsigned prefix, unsigned flags) {
  struct interface *to = &list->items[list->count++];
  *to = (struct interface){ .flags = flags,
                            .nic.prefix_bits = prefix,
                            .nic.address = fake_nic_address(address),
                            .verdict = INTERFACE_OVER_LIMIT };
  snprintf(to->nic.name, sizeof(to->nic.name), "%s", name);
  return to;
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
      strcat(strcat(text, list->items[i].nic.name), ",");
      count--;
    }
  }
  assert_int_equal(count, 0);
  return text;
}

/* As the kernel orders them: all IPv4 first. */
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
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,eth1,eth10,");
  assert_int_equal(list.items[0].verdict, INTERFACE_LESS_PREFERRED);
  assert_int_equal(list.items[4].verdict, INTERFACE_NOT_RUNNING);
  assert_int_equal(list.items[5].verdict, INTERFACE_LESS_PREFERRED);
  assert_int_equal(list.items[7].verdict, INTERFACE_LOOPBACK_ADDRESS);
  assert_int_equal(list.items[8].verdict, INTERFACE_SECOND_ADDRESS);
  assert_int_equal(list.items[10].verdict, INTERFACE_OF_ITS_LINK);
}

LOG_CAPTURE_TEST(ib_is_preferred) {
  struct list list = cloud_host();
  add(&list, "ibs3", "10.9.0.1", 24, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "ibs3,");
  assert_int_equal(list.items[1].verdict, INTERFACE_LESS_PREFERRED);
  /* The user's word counts more. */
  assert_string_equal(chosen(&list, "eth0", NULL, NULL), "eth0,");
}

/* How NCCL reads the list is test_name_list.c's. */
LOG_CAPTURE_TEST(interfaces_can_be_named) {
  static const struct {
    const char *ifname, *chosen;
  } cases[] = {
    { "eth", "eth0,eth1,eth10,eth3," },
    { "eth1:5,docker", "eth1,eth10,docker0," },
    { "wlan", "" },
    { "lo", "lo," },
    { "=eth1,eth0", "eth0,eth1," },
    { "^eth1,docker", "lo,eth0,virbr0,eth3," },
    { "^=eth1,docker", "lo,eth0,eth10,docker0,virbr0,eth3," },
    { "^,", "" },                /* nothing named and excluded: nothing is left */
    { "^", "eth0,eth1,eth10," }, /* one character is no wish */
    { "", "eth0,eth1,eth10," },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct list list = cloud_host();
    assert_string_equal(chosen(&list, cases[i].ifname, NULL, NULL), cases[i].chosen);
  }
  struct list list = cloud_host();
  chosen(&list, "eth1", NULL, NULL);
  assert_int_equal(list.items[1].verdict, INTERFACE_NOT_NAMED);
}

LOG_CAPTURE_TEST(family_can_be_forced) {
  struct list list = cloud_host();
  assert_string_equal(chosen(&list, NULL, "AF_INET", NULL), "eth0,eth1,eth10,");
  assert_string_equal(chosen(&list, NULL, "AF_INET6", NULL), "eth0,");
  assert_int_equal(list.items[8].verdict, INTERFACE_CHOSEN); /* global before link-local */
  assert_int_equal(list.items[1].verdict, INTERFACE_OTHER_FAMILY);
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_string_equal(chosen(&list, "eth0", "IPV6", NULL), "eth0,");
  assert_int_equal(list.items[1].verdict, INTERFACE_CHOSEN);
  assert_true(log_capture_find("AF_INET6") > 0);
}

LOG_CAPTURE_TEST(fallbacks_come_in_order) {
  static struct list list;
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
  assert_string_equal(chosen(&list, NULL, NULL, "10.77.0.1:5000"), "eth0,eth1,eth10,");
  /* A wish by name comes first. */
  assert_string_equal(chosen(&list, "eth0", NULL, "10.1.0.77:5000"), "eth0,");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  assert_string_equal(chosen(&list, NULL, NULL, "[nonsense:5000"), "eth0,eth1,eth10,");
  assert_true(log_capture_find("NCCL_COMM_ID") > 0);
}

LOG_CAPTURE_TEST(sixteen_are_taken) {
  static struct list list;
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

/* Those of services, as kube-proxy's IPVS mode has them, come before the NIC's. */
LOG_CAPTURE_TEST(what_is_not_chosen_hides_nothing) {
  static struct list list;
  for (int i = 0; i < 400; i++) {
    add(&list, i % 2 ? "lo" : "kube-ipvs0", "10.96.0.1", 32, i % 2 ? RUNNING : IFF_UP);
  }
  for (int i = 0; i < 40; i++) {
    char name[IF_NAMESIZE];
    snprintf(name, sizeof(name), "cali%d", i);
    add(&list, name, "fe80::1", 64, RUNNING);
  }
  add(&list, "eth0", "10.0.0.1", 24, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,");
  assert_string_equal(chosen(&list, "^lo,cali", NULL, NULL), "eth0,");
}

LOG_CAPTURE_TEST(addresses_of_one_link_are_no_second_nic) {
  static struct list list;
  add(&list, "eth0", "10.0.0.1", 24, RUNNING);
  add(&list, "usb0", "169.254.3.1", 16, RUNNING);
  add(&list, "eth1", "fe80::1", 64, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,");
  assert_int_equal(list.items[1].verdict, INTERFACE_OF_ITS_LINK);
  assert_int_equal(list.items[2].verdict, INTERFACE_OF_ITS_LINK);
  /* The user's word counts, and where there is nothing else they are used, as with BGP unnumbered.
   */
  assert_string_equal(chosen(&list, "eth,usb", NULL, NULL), "eth0,usb0,eth1,");
  list.items[0].flags = IFF_UP;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "usb0,eth1,");
}

LOG_CAPTURE_TEST(one_hardware_address_is_one_nic) {
  static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };
  static struct list list;
  struct interface *each[] = { add(&list, "eth0", "10.0.0.1", 24, RUNNING),
                               add(&list, "eth0.7", "10.7.0.1", 24, RUNNING),
                               add(&list, "eth1", "10.1.0.1", 24, RUNNING),
                               add(&list, "tun0", "10.2.0.1", 24, RUNNING),
                               add(&list, "tun1", "10.3.0.1", 24, RUNNING) };
  for (int i = 0; i < 3; i++) {
    memcpy(each[i]->hardware, mac, sizeof(mac));
    each[i]->hardware_bytes = sizeof(mac);
  }
  each[2]->hardware[5] = 8;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,eth1,tun0,tun1,");
  assert_int_equal(each[1]->verdict, INTERFACE_SAME_HARDWARE);
  assert_string_equal(chosen(&list, "eth", NULL, NULL), "eth0,eth0.7,eth1,");
  each[0]->flags = IFF_UP;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0.7,eth1,tun0,tun1,");
}

LOG_CAPTURE_TEST(bridges_of_containers_are_no_second_nic) {
  static struct list list;
  add(&list, "br-5f2c", "172.18.0.1", 16, RUNNING)->is_inner_bridge = true;
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "br-5f2c,");
  add(&list, "eth0", "10.0.0.1", 24, RUNNING);
  assert_string_equal(chosen(&list, NULL, NULL, NULL), "eth0,");
  assert_int_equal(list.items[0].verdict, INTERFACE_OF_THIS_HOST);
  assert_string_equal(chosen(&list, "^lo", NULL, NULL), "br-5f2c,eth0,");
}

/* The address that is chosen, with a comma behind it. */
static const char *address_of(struct list *list) {
  static char text[INTERFACE_ADDRESS_TEXT_MAX + 1];
  struct interface_wishes wishes = { .ifname = "eth0" };
  assert_int_equal(interface_select(list->items, list->count, &wishes), 1);
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].verdict == INTERFACE_CHOSEN) {
      interface_address_text(&list->items[i].nic.address, text);
    }
  }
  return text;
}

LOG_CAPTURE_TEST(the_address_for_traffic_is_taken) {
  static struct list list;
  struct interface *first = add(&list, "eth0", "10.0.0.100", 32, RUNNING);
  struct interface *second = add(&list, "eth0", "10.0.0.5", 24, RUNNING);
  struct interface *third = add(&list, "eth0", "10.0.0.6", 24, RUNNING);
  struct interface *v6 = add(&list, "eth0", "fd00::1", 64, RUNNING);
  assert_string_equal(address_of(&list), "10.0.0.5"); /* a virtual one has no subnet */
  assert_int_equal(first->verdict, INTERFACE_SECOND_ADDRESS);
  assert_int_equal(v6->verdict, INTERFACE_SECOND_ADDRESS);
  second->address_flags = IFA_F_SECONDARY;
  assert_string_equal(address_of(&list), "10.0.0.6");
  third->address_flags = IFA_F_DEPRECATED;
  assert_string_equal(address_of(&list), "10.0.0.5");
  first->nic.prefix_bits = 24;
  third->address_flags = 0;
  assert_string_equal(address_of(&list), "10.0.0.100"); /* equals: the first, as NCCL */
  third->is_route_source = true;
  assert_string_equal(address_of(&list), "10.0.0.6");
  second->is_route_source = true;
  third->is_route_source = false;
  assert_string_equal(address_of(&list), "10.0.0.5"); /* a route names it */
  second->address_flags |= IFA_F_DEPRECATED;
  assert_string_equal(address_of(&list), "10.0.0.100");
}

LOG_CAPTURE_TEST(the_steady_ipv6_address_is_taken) {
  static struct list list;
  struct interface *temporary = add(&list, "eth0", "fd00::99", 64, RUNNING);
  struct interface *refused = add(&list, "eth0", "fd00::2", 64, RUNNING);
  add(&list, "eth0", "fe80::1", 64, RUNNING);
  struct interface *steady = add(&list, "eth0", "fd00::1", 64, RUNNING);
  temporary->address_flags = IFA_F_TEMPORARY;
  temporary->is_route_source = true;
  refused->address_flags = IFA_F_TENTATIVE | IFA_F_DADFAILED;
  assert_string_equal(address_of(&list), "fd00::1");
  steady->address_flags = IFA_F_TENTATIVE; /* for a second or two */
  assert_string_equal(address_of(&list), "fd00::1");
}

LOG_CAPTURE_TEST(the_system_has_a_loopback) {
  struct interface *items;
  int count = interface_list(&items);
  bool is_found = false;
  char text[INTERFACE_ADDRESS_TEXT_MAX];
  for (int i = 0; i < count; i++) {
    if (!strcmp(items[i].nic.name, "lo") && items[i].nic.address.ss_family == AF_INET) {
      is_found = true;
      assert_string_equal(interface_address_text(&items[i].nic.address, text), "127.0.0.1");
      assert_int_equal(items[i].nic.prefix_bits, 8);
      assert_int_equal(items[i].nic.index, 1);
      assert_int_equal(items[i].hardware_bytes, 0);
    }
  }
  assert_true(is_found);
  free(items);
}

LOG_CAPTURE_TEST(every_verdict_has_a_text) {
  for (int i = INTERFACE_CHOSEN; i <= INTERFACE_WITHOUT_HCA; i++) {
    assert_true(strlen(interface_verdict_text((enum interface_verdict)i)) > 0);
  }
}
