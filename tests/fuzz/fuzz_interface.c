/* SPDX-License-Identifier: Apache-2.0 */
/* Which interfaces are used, from any text in NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY, NCCL_COMM_ID
 * and STRATUS_SPEED_MBPS: four lines of the input. Further lines name interfaces. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include "net_plugin/plugin/device.h"
#include "net_plugin/plugin/interface.h"
#include "tests/fuzz/fuzz.h"

enum { EXTRA_MAX = 24 };

/* The linker sends calls of getaddrinfo here: numbers resolve, no name server is asked. */
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result) {
  struct addrinfo numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  return __real_getaddrinfo(node, service, &numeric, result);
}

static void add(struct interface *it, const char *name, const char *address, unsigned flags) {
  *it = (struct interface){ .flags = flags };
  snprintf(it->name, sizeof it->name, "%s", name);
  struct sockaddr_in *in = (struct sockaddr_in *)&it->address;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&it->address;
  if (strchr(address, ':')) {
    in6->sin6_family = it->netmask.ss_family = AF_INET6;
    inet_pton(AF_INET6, address, &in6->sin6_addr);
    memset(&((struct sockaddr_in6 *)&it->netmask)->sin6_addr, 0xff, 8);
  } else {
    in->sin_family = it->netmask.ss_family = AF_INET;
    inet_pton(AF_INET, address, &in->sin_addr);
    ((struct sockaddr_in *)&it->netmask)->sin_addr.s_addr = htonl(0xffffff00);
  }
}

static size_t fill_list(struct interface *list, struct fuzz_input *input) {
  const unsigned running = IFF_UP | IFF_RUNNING;
  size_t count = 0;
  add(&list[count++], "lo", "127.0.0.1", running | IFF_LOOPBACK);
  add(&list[count++], "eth0", "10.0.0.1", running);
  add(&list[count++], "eth0", "fe80::1", running);
  add(&list[count++], "eth1", "10.0.1.1", running);
  add(&list[count++], "ib0", "10.0.2.1", IFF_UP);
  add(&list[count++], "docker0", "172.17.0.1", running);
  for (unsigned i = 0; i < EXTRA_MAX && input->left > 0; i++) {
    char *name = fuzz_line(input);
    add(&list[count++], name[0] ? name : "x", i % 2 ? "::1" : "192.168.7.9", running);
    free(name);
  }
  return count;
}

static void check_devices(const struct interface *list, size_t count, size_t chosen,
                          const char *speed_mbps) {
  static struct device_table table;
  memset(&table, 0, sizeof table);
  struct device_settings settings = { .sysfs_root = "/nowhere", .speed_mbps = speed_mbps };
  device_table_discover(&table, list, count, &settings);
  FUZZ_CHECK(table.count == (int)chosen);
  for (int i = 0; i < table.count; i++) {
    FUZZ_CHECK(table.devices[i].speed_mbps > 0 && table.devices[i].name[0] != '\0');
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  log_set_sink(fuzz_swallow_log);
  struct fuzz_input input = { data, size };
  struct interface list[8 + EXTRA_MAX];
  char *lines[4];
  for (unsigned i = 0; i < 4; i++) {
    lines[i] = fuzz_line(&input);
  }
  /* An empty line is a variable that is not set. */
  struct interface_wishes wishes = {
    .ifname = lines[0][0] ? lines[0] : NULL,
    .family = lines[1][0] ? lines[1] : NULL,
    .comm_id = lines[2][0] ? lines[2] : NULL,
  };
  size_t count = fill_list(list, &input), chosen = 0;
  size_t told = interface_select(list, count, &wishes);
  for (size_t i = 0; i < count; i++) {
    char text[INTERFACE_ADDRESS_TEXT_MAX];
    FUZZ_CHECK(interface_verdict_text(list[i].verdict)[0] != '\0');
    FUZZ_CHECK(interface_address_text(&list[i].address, text)[0] != '\0');
    chosen += list[i].verdict == INTERFACE_CHOSEN;
  }
  FUZZ_CHECK(chosen == told && chosen <= INTERFACE_CHOSEN_MAX);
  check_devices(list, count, chosen, lines[3]);
  for (unsigned i = 0; i < 4; i++) {
    free(lines[i]);
  }
  return 0;
}
