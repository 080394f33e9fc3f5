/* SPDX-License-Identifier: Apache-2.0 */
/* Which interfaces are used and what becomes of them, from any text in NCCL_SOCKET_IFNAME,
 * NCCL_SOCKET_FAMILY, NCCL_COMM_ID, STRATUS_SPEED_MBPS, STRATUS_MERGE_NICS and STRATUS_THREAD_CPUS:
 * six lines of the input. Further lines name interfaces. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>

#include "net_plugin/plugin/device.h"
#include "net_plugin/plugin/interface.h"
#include "tests/fuzz/fuzz.h"

enum { LINES = 6, EXTRA_MAX = 24 };

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
  *it = (struct interface){ .flags = flags, .prefix_bits = strchr(address, ':') ? 64 : 24 };
  snprintf(it->name, sizeof it->name, "%s", name);
  struct sockaddr_in *in = (struct sockaddr_in *)&it->address;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&it->address;
  if (strchr(address, ':')) {
    in6->sin6_family = AF_INET6;
    inet_pton(AF_INET6, address, &in6->sin6_addr);
  } else {
    in->sin_family = AF_INET;
    inet_pton(AF_INET, address, &in->sin_addr);
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
                          char *const lines[LINES]) {
  static struct device_table table;
  unsigned nics = 0;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CPU_SET(0, &allowed);
  CPU_SET(3, &allowed);
  struct device_settings settings = {
    .sysfs_root = "/nowhere",
    .speed_mbps = lines[3],
    .merge_nics = lines[4],
    .thread_cpus = lines[5],
    .allowed_cpus = &allowed,
  };
  memset(&table, 0, sizeof table);
  device_table_discover(&table, list, count, &settings);
  for (int i = 0; i < table.count; i++) {
    const struct device *device = &table.devices[i];
    FUZZ_CHECK(device->speed_mbps > 0 && device->name[0] != '\0');
    FUZZ_CHECK(device->nic_count >= 1 && device->nic_count <= NIC_MAX_FUSED);
    FUZZ_CHECK(memchr(device->name, '\0', sizeof device->name) != NULL);
    nics += device->nic_count;
  }
  FUZZ_CHECK(nics == chosen); /* merged or not, each is in one device */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  log_set_sink(fuzz_swallow_log);
  struct fuzz_input input = { data, size };
  struct interface list[8 + EXTRA_MAX];
  char *lines[LINES];
  for (unsigned i = 0; i < LINES; i++) {
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
  check_devices(list, count, chosen, lines);
  for (unsigned i = 0; i < LINES; i++) {
    free(lines[i]);
  }
  return 0;
}
