/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL: loads the built network plugin as that release does and
 * calls it through that release's declarations, over the loopback interface. */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/abi/net_driver.h"

static bool warns(const char *text) {
  return cases_log_count(NCCL_LOG_WARN, text) > 0;
}

static bool informs(const char *text) {
  return cases_log_count(NCCL_LOG_INFO, text) > 0;
}

static int devices(const struct host *host) {
  int count = -1;
  CHECK_OK(HOST_CALL(host, devices, &count));
  return count;
}

static const size_t some_sizes[] = { 0, 8, 1, 100, 4096, 0, 70000 };
enum { SOME = sizeof(some_sizes) / sizeof(some_sizes[0]) };

/* ---- cases ---- */

static void case_properties(void) {
  setenv("STRATUS_SPEED_MBPS", "lo=4000", 1);
  struct host host = host_open();
  void *context;
  CHECK(strcmp(host_name(&host), "stratus") == 0);
  CHECK_OK(host_init(&host, &context, cases_log));
  CHECK(devices(&host) == 1);
  char banner[64];
  snprintf(banner, sizeof(banner), "interface v%d, 1 device", host.version);
  CHECK(informs("NET/stratus: stratus ") && informs(banner) && informs("127.0.0.1"));
  CHECK(informs("NCCL_NET_PLUGIN=none") && informs("4000 Mb/s (from parameter)"));
  CHECK(!warns(""));

  struct host_properties p;
  CHECK_OK(host_properties(&host, 0, &p));
  CHECK(strcmp(p.name, "lo") == 0 && p.pci_path == NULL);
  CHECK(p.ptr_support == PTR_HOST && p.speed == 4000 && p.port == 0 && p.latency == 0);
  CHECK(p.max_comms == 65536 && p.max_recvs == 1);
  CHECK(p.device_type == (host.version >= 7 ? NCCL_NET_DEVICE_HOST : -77));
  CHECK(p.reg_is_global == (host.version >= 8 ? 0 : -77));
  CHECK(p.force_flush == (host.version >= 9 ? 0 : -77));
  CHECK(p.ndevs == (host.version >= 9 ? 1 : -77) && p.dev0 == (host.version >= 9 ? 0 : -77));
  CHECK(p.max_p2p_bytes == (host.version >= 9 ? (size_t)1 << 40 : 0));
  CHECK(p.multi_request == (host.version >= 11 ? 1 : -77));
  CHECK(p.rail == (host.version >= 12 ? -1 : -77) && p.plane == (host.version >= 12 ? -1 : -77));
  CHECK_OK(host_finalize(&host, context));
}

static void case_transfer(void) {
  static const size_t sizes[] = { 0,    1,      7,     8,       128,     129,
                                  4096, 16384,  65536, 131072,  1 << 20, (5 << 20) + 3,
                                  0,    524288, 13,    1000003, 1 << 20, 0,
                                  0,    200000, 64 };
  enum { COUNT = sizeof(sizes) / sizeof(sizes[0]), MANY = 300 };
  struct host host = host_open();
  void *context;
  CHECK_OK(host_init(&host, &context, cases_log));
  CHECK_OK(host_set_attributes(&host, context));
  struct exchange_pair pair;
  exchange_connect(&host, context, &pair);
  exchange_run(&pair, sizes, COUNT);
  size_t many[MANY];
  for (size_t i = 0; i < MANY; i++) {
    many[i] = i * 7919 % 9000;
  }
  exchange_run(&pair, many, MANY);

  char flushed[4];
  void *request = (void *)1, *data = flushed, *mhandle = NULL;
  int bytes = sizeof(flushed);
  CHECK_OK(HOST_CALL(&host, iflush, pair.recv, 1, &data, &bytes, &mhandle, &request));
  CHECK(request == NULL);
  exchange_close(&pair, host.version);
  CHECK_OK(host_finalize(&host, context));
  CHECK(!warns(""));
}

/* Sockets of this process that mark their packets so. */
static int sockets_with_tos(int wanted) {
  int found = 0;
  for (int fd = 0; fd < 1024; fd++) {
    int tos = 0;
    socklen_t length = sizeof(tos);
    found += getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &length) == 0 && tos == wanted;
  }
  return found;
}

/* A communicator's traffic class (v10 and later) becomes the DSCP of its connections. */
static void case_traffic_class(void) {
  struct host host = host_open();
  host.traffic_class = 106; /* the lower two bits are not the user's */
  void *context;
  CHECK_OK(host_init(&host, &context, cases_log));
  struct exchange_pair pair;
  exchange_connect(&host, context, &pair);
  exchange_run(&pair, some_sizes, SOME);
  CHECK((sockets_with_tos(104) > 0) == (host.version >= 10));
  exchange_close(&pair, 0);
  CHECK_OK(host_finalize(&host, context));
}

static void case_wrong_use(void) {
  setenv("STRATUS_SPEDD_MBPS", "4000", 1);
  setenv("STRATUS_CHUNK_BYTES", "many", 1);
  setenv("STRATUS_GPU_POINTERS", "1", 1);
  struct host host = host_open();
  void *context;
  CHECK_OK(host_init(&host, &context, cases_log));
  CHECK(devices(&host) == 1);
  CHECK(warns("STRATUS_SPEDD_MBPS") && warns("STRATUS_SPEED_MBPS"));
  CHECK(warns("STRATUS_CHUNK_BYTES") && warns("4K..4M"));

  struct host_properties p;
  CHECK(host_properties(&host, 1, &p) != NCCL_SUCCESS && host_properties(&host, -1, &p));
  CHECK_OK(host_properties(&host, 0, &p));
  CHECK(p.ptr_support == (1 | 2 | 4));
  unsigned char handle[HANDLE_BYTES];
  void *comm = NULL;
  CHECK(host_listen(&host, context, 5, handle, &comm) != NCCL_SUCCESS && !comm);
  int fused = -1;
  CHECK(host_fuse(&host, &fused, 2, 0, 0) != NCCL_SUCCESS && fused == -1);
  CHECK(host_fuse(&host, &fused, 2, 0, 1) != NCCL_SUCCESS && devices(&host) == 1);

  struct exchange_pair pair;
  exchange_connect(&host, context, &pair);
  void *request = NULL, *mhandle = NULL;
  char data[8];
  CHECK(host_irecv(&host, pair.recv, 2, data, 8, NULL, NULL, false, &request) != NCCL_SUCCESS);
  void *gpu = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(host_register(&host, pair.send, gpu, 4096, PTR_CUDA, &mhandle) != NCCL_SUCCESS);
  CHECK(warns("unset STRATUS_GPU_POINTERS"));
  exchange_close(&pair, 0);
  CHECK_OK(host_finalize(&host, context));
}

static void case_no_interface(void) {
  setenv("NCCL_SOCKET_IFNAME", "=absent0", 1);
  struct host host = host_open();
  void *context;
  CHECK_OK(host_init(&host, &context, cases_log));
  CHECK(devices(&host) == 0);
  CHECK(warns("NET/stratus: no usable network interface"));
  CHECK(warns("\"=absent0\"") && warns("lo does not match NCCL_SOCKET_IFNAME"));
  CHECK_OK(host_finalize(&host, context));
}

/* ---- fusion, on a network of its own ---- */

static void remove_nics(const char *root) {
  char command[64];
  snprintf(command, sizeof(command), "rm -r %s", root);
  CHECK(system(command) == 0);
}

/* The kernel takes a moment to notice that both ends of a veth are up. */
static void wait_until_running(const char *name) {
  struct ifreq request = { 0 };
  strcpy(request.ifr_name, name);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(fd >= 0);
  for (int i = 0; i < 5000 && !(request.ifr_flags & IFF_RUNNING); i++) {
    CHECK(ioctl(fd, SIOCGIFFLAGS, &request) == 0);
    usleep(1000);
  }
  CHECK(request.ifr_flags & IFF_RUNNING);
  close(fd);
}

/* Two NICs, and a sysfs in which they are on PCI or not. False: not allowed to. */
static bool make_nics(char root[32], bool is_on_pci) {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS)) {
    return false;
  }
  strcpy(root, "/tmp/stratus-abi-XXXXXX");
  CHECK(mkdtemp(root));
  for (int i = 0; i < 2; i++) {
    char command[1024];
    snprintf(command, sizeof(command),
             "ip link add eth%d type veth peer name peer%d && ip address add 10.9.%d.1/24 dev "
             "eth%d && ip link set eth%d up && ip link set peer%d up && d=%s/sys/devices/%s:00.%d/"
             "net/eth%d && mkdir -p $d %s/sys/class/net && ln -s $d %s/sys/class/net/eth%d && "
             "ln -s ../.. $d/device",
             i, i, i, i, i, i, root, is_on_pci ? "pci0000:00/0000:07" : "vmbus", i, i, root, root,
             i);
    if (system(command) != 0) {
      remove_nics(root);
      return false;
    }
  }
  wait_until_running("eth0");
  wait_until_running("eth1");
  char sys[64];
  snprintf(sys, sizeof(sys), "%s/sys", root);
  CHECK_OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
           mount(sys, "/sys", NULL, MS_BIND, NULL));
  setenv("STRATUS_SPEED_MBPS", "eth0=1000,eth1=3000", 1);
  setenv("NCCL_SOCKET_IFNAME", "eth", 1);
  return true;
}

static void check_fused(const struct host *host) {
  int fused = -1;
  struct host_properties p;
  CHECK_OK(host_fuse(host, &fused, 2, 0, 1));
  CHECK(fused == 2 && devices(host) == 3);
  CHECK_OK(host_properties(host, 2, &p));
  CHECK(strcmp(p.name, "eth0+eth1") == 0 && p.speed == 4000 && p.ndevs == 2 && p.dev0 == 0);
  CHECK(p.pci_path && strstr(p.pci_path, "/0000:07:00.0"));
  CHECK_OK(host_fuse(host, &fused, 2, 0, 1));
  CHECK(fused == 2 && devices(host) == 3);
}

/* 2.24 and 2.25 want a device for each, later releases want to hear no. */
static void check_apart(const struct host *host) {
  int fused = -1;
  struct host_properties p;
  if (host->version > 9) {
    CHECK(host_fuse(host, &fused, 2, 0, 1) != NCCL_SUCCESS && devices(host) == 2);
    return;
  }
  CHECK_OK(host_fuse(host, &fused, 2, 0, 1));
  CHECK(devices(host) == 4);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(host_properties(host, 2 + i, &p));
    CHECK(strcmp(p.name, i ? "eth1" : "eth0") == 0 && p.ndevs == 1 && p.dev0 == i);
  }
}

static void case_fuse(void) {
  bool is_on_pci = cases_variant;
  char root[32];
  if (!make_nics(root, is_on_pci)) {
    fprintf(stderr, "# skipped: this needs network namespaces and the ip command\n");
    exit(CASES_SKIP);
  }
  struct host host = host_open();
  void *context, *next;
  CHECK_OK(host_init(&host, &context, cases_log));
  CHECK(devices(&host) == 2);
  if (host.version >= 9) {
    (is_on_pci ? check_fused : check_apart)(&host);
  }
  if (host.version >= 11 && is_on_pci) {
    struct host_properties p;
    /* Kept loaded: NCCL goes on with the numbers it knows. */
    CHECK_OK(host_finalize(&host, context));
    CHECK_OK(host_init(&host, &next, cases_log));
    CHECK_OK(host_properties(&host, 2, &p));
    /* Loaded again: NCCL asks, and must hear of physical devices only. */
    CHECK(devices(&host) == 2);
    context = next;
  }
  CHECK_OK(host_finalize(&host, context));
  CHECK(!warns(""));
  remove_nics(root);
}

static const struct cases_case cases[] = {
  { "properties", case_properties, 0 },       { "transfer", case_transfer, 0 },
  { "traffic_class", case_traffic_class, 0 }, { "wrong_use", case_wrong_use, 0 },
  { "no_interface", case_no_interface, 0 },   { "fuse", case_fuse, true },
  { "fuse_without_pci", case_fuse, false },   { 0 },
};

const struct cases_host net_host = {
  .name = "net",
  .title = "net plugin, every release",
  .is_by_net = true,
  .leaves_threads = true,
  .cases = cases,
};
