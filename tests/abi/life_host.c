/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for each release of NCCL that has another set of interfaces: all of both plugins'
 * tables together, in its order; also half way, with another release in the process, and unloaded.
 * What they leave is looked for in /proc/self. The order is that of initTransportsRank and
 * commFree, src/init.cc at v2.30.7: network, CollNet, tuner; at the end tuner, network.
 *
 * Where a step fails and what is closed then, in NCCL v2.19.3, v2.22.3, v2.29.7 and v2.30.7:
 * proxyProgressAsync (src/proxy.cc) takes a connect or accept that failed for connected, so
 * sendProxyFree and recvProxyFree (src/transport/net.cc) deregister and close what never was; one
 * that was still waiting they forget. recvProxyConnect closes its listener after a success only.
 * CollNet's sharedConnect (src/transport/coll_net.cc) closes its listener when no group came. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/abi/collnet_abi.h"
#include "tests/abi/net_driver.h"
#include "tests/abi/tuner_driver.h"
#include "tests/lib/traces.h"

enum { ROUNDS = 3, NODES = 2, RANKS = 4, BYTES = 4096 };

static const size_t sizes[] = { 0, 8, 5000, 300000 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* ---- all tables that a release takes ---- */

struct life {
  int net; /* version of the network's tables */
  struct host host;
  struct driver_plugin tuner;
  const void *collnet; /* NULL: the release has none of this version */
  void *nccl;          /* a stand-in that owns the logger */
  nccl_logger_fn *logger;
  int *warnings; /* what it counted */
};

#define LIFE_COLLNET(life, v) ((const struct collnet_v##v *)(life)->collnet)

/* Of one communicator; the tuner's is NULL where it did not begin. */
struct communicator {
  void *net;
  struct driver_comm tuner;
};

static const char *nccl_file = "/abi_nccl.so";

/* Beside this program. */
static const char *nccl_path(void) {
  static char path[512];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
  CHECK(length > 0);
  path[length] = '\0';
  strcpy(strrchr(path, '/'), nccl_file);
  return path;
}

static void load(struct life *life, const struct release *release) {
  char symbol[48];
  *life = (struct life){ .net = release->net,
                         .host = host_open(),
                         .nccl = dlopen(nccl_path(), RTLD_NOW | RTLD_LOCAL) };
  CHECK(life->nccl);
  host_use(&life->host, release->net);
  driver_open(&life->tuner, release);
  snprintf(symbol, sizeof(symbol), "ncclCollNetPlugin_v%d", release->net);
  life->collnet = dlsym(life->host.library, symbol);
  life->logger = (nccl_logger_fn *)dlsym(life->nccl, "nccl_logger");
  life->warnings = dlsym(life->nccl, "nccl_warnings");
  CHECK(life->logger && life->warnings);
  life->tuner.logger = life->logger;
}

/* CollNet is off, so it shows no devices, and NCCL does not end it. */
static void start_collnet(const struct life *life) {
  void *context = NULL;
  int count = -1;
  if (!life->collnet) {
    return;
  }
  CHECK_OK(life->net < 11 ? LIFE_COLLNET(life, 8)->init(life->logger)
                          : LIFE_COLLNET(life, 11)->init(&context, 0x1234, life->logger));
  CHECK_OK(LIFE_COLLNET(life, 8)->devices(&count));
  CHECK(count == 0);
}

/* In NCCL's order, until one fails; the devices of the network. */
static enum nccl_result try_to_begin(const struct life *life, struct communicator *communicator,
                                     int *devices) {
  *communicator = (struct communicator){ NULL, { .plugin = &life->tuner } };
  *devices = 0;
  enum nccl_result result = host_init(&life->host, &communicator->net, life->logger);
  if (result == NCCL_SUCCESS) {
    CHECK_OK(HOST_CALL(&life->host, devices, devices));
    start_collnet(life);
    result = driver_init_comm(&communicator->tuner, &life->tuner, RANKS, NODES);
  }
  return result;
}

static void begin(const struct life *life, struct communicator *communicator) {
  int devices;
  CHECK_OK(try_to_begin(life, communicator, &devices));
  CHECK(devices == 1);
}

/* Also what did not begin. */
static void end(const struct life *life, struct communicator *communicator) {
  driver_close_comm(&communicator->tuner);
  CHECK_OK(host_finalize(&life->host, communicator->net));
}

static void exchange(const struct life *life, const struct communicator *communicator) {
  struct exchange_pair pair;
  exchange_connect(&life->host, communicator->net, &pair);
  exchange_run(&pair, sizes, SIZES);
  exchange_close(&pair, 0);
}

/* ---- what a process has ---- */

/* Interfaces before v11 have no finalize: there a thread, its descriptors and a socket stay by
 * design. */
static void check_nothing_is_left(const struct life *life, struct traces before) {
  struct traces now = traces_left(before);
  if (life->net >= 11) {
    CHECK(now.threads == before.threads);
    CHECK(now.descriptors == before.descriptors);
  }
}

static bool is_mapped(const char *path) {
  char line[512];
  bool is_found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  while (fgets(line, sizeof(line), maps)) {
    is_found |= strstr(line, path) != NULL;
  }
  fclose(maps);
  return is_found;
}

/* ---- cases ---- */

static void case_order(void) {
  struct life life;
  struct communicator communicator;
  load(&life, cases_release);
  struct traces before = traces_now();
  for (int round = 0; round < ROUNDS; round++) {
    begin(&life, &communicator);
    exchange(&life, &communicator);
    end(&life, &communicator);
    check_nothing_is_left(&life, before);
    if (life.net >= 11) { /* NCCL unloads the plugin in between */
      CHECK(dlclose(life.host.library) == 0);
      life.host = host_open();
    }
  }
  CHECK(*life.warnings == 0);
}

/* Some communicators at once, of which the first ends first. */
static void case_several(void) {
  struct life life;
  struct communicator communicators[ROUNDS];
  load(&life, cases_release);
  struct traces before = traces_now();
  for (int i = 0; i < ROUNDS; i++) {
    begin(&life, &communicators[i]);
    CHECK(life.net < 11 || i == 0 || communicators[i].net != communicators[i - 1].net);
  }
  for (int i = 0; i < ROUNDS; i++) {
    exchange(&life, &communicators[i]);
    end(&life, &communicators[i]);
  }
  check_nothing_is_left(&life, before);
  CHECK(*life.warnings == 0);
}

/* NCCL goes on with its own transport; what had begun it ends. */
static void fails(bool has_begun) {
  struct life life;
  struct communicator communicator;
  int devices;
  load(&life, cases_release);
  struct traces before = traces_now();
  for (int round = 0; round < ROUNDS; round++) {
    enum nccl_result result = try_to_begin(&life, &communicator, &devices);
    CHECK((result == NCCL_SUCCESS) == has_begun && devices == 0);
    end(&life, &communicator);
    check_nothing_is_left(&life, before);
  }
  CHECK(*life.warnings > 0);
}

static void case_network_fails(void) {
  setenv("STRATUS_ADVERTISE_ADDRESS", "nowhere", 1);
  fails(false);
}

static void case_no_devices(void) {
  setenv("NCCL_SOCKET_IFNAME", "=nothing", 1);
  fails(true);
}

/* As of a framework's own NCCL beside the system's. */
static void case_two_releases(void) {
  struct life one, other;
  struct communicator first, second;
  load(&one, cases_release);
  load(&other, &releases[RELEASES - 1]);
  begin(&one, &first);
  for (int round = 0; round < ROUNDS; round++) {
    begin(&other, &second);
    exchange(&other, &second);
    exchange(&one, &first);
    end(&other, &second);
    exchange(&one, &first);
  }
  end(&one, &first);
  CHECK(*one.warnings == 0);
}

/* A stranger, to every port that is listening. */
static int write_to_ports(void) {
  int count = 0;
  for (int fd = 3; fd < 256; fd++) {
    struct sockaddr_in address;
    socklen_t bytes = sizeof(address), flag_bytes = sizeof(int);
    int is_listening = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &flag_bytes) == 0 &&
        is_listening && getsockname(fd, (struct sockaddr *)&address, &bytes) == 0 &&
        address.sin_family == AF_INET) {
      char text[64] = "what is no hello";
      int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      CHECK(connect(stranger, (struct sockaddr *)&address, bytes) == 0);
      CHECK(send(stranger, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text));
      while (recv(stranger, text, sizeof(text), 0) > 0) {
      }
      close(stranger);
      count++;
    }
  }
  return count;
}

/* What has an end can be unloaded; the NCCL that it logged through stays. */
static void case_unload(void) {
  struct life life;
  struct communicator communicator;
  load(&life, cases_release);
  begin(&life, &communicator);
  exchange(&life, &communicator);
  end(&life, &communicator);
  driver_close(&life.tuner);
  CHECK(dlclose(life.host.library) == 0 && dlclose(life.nccl) == 0);
  int ports = write_to_ports();
  CHECK((ports > 0) == (cases_release->net < 11));
  CHECK(is_mapped(nccl_path()));
}

/* Other libraries number the levels of their log otherwise: a good start is no warning there, and
 * a bad one is. */
static void case_levels(void) {
  struct life life;
  struct communicator communicator;
  nccl_file = cases_variant ? "/abi_ncclx.so" : "/librccl_abi.so";
  setenv("STRATUS_ENCRYPT", "of course", 1); /* which ends listen */
  load(&life, cases_release);
  begin(&life, &communicator);
  CHECK(*life.warnings == 0);
  void *comm = NULL;
  unsigned char handle[HANDLE_BYTES];
  CHECK(host_listen(&life.host, communicator.net, 0, handle, &comm) != NCCL_SUCCESS);
  CHECK(*life.warnings > 0);
  end(&life, &communicator);
}

/* ---- half-way ---- */

/* What set-up does, in turn. */
enum step {
  INIT,
  LISTEN,
  CONNECT,
  CONNECTED,
  REGISTER_SEND,
  REGISTER_RECV,
  POST_RECV,
  POST_SEND,
  STEPS
};

struct teardown {
  struct exchange_pair pair;
  void *context, *send_mhandle, *recv_mhandle, *send_request, *recv_request;
  char send_data[BYTES], recv_data[BYTES];
};

static void set_up(struct teardown *t, const struct life *life, enum step failed) {
  unsigned char handle[HANDLE_BYTES] = { 0 };
  for (enum step step = INIT; step < failed; step++) {
    switch (step) {
    case INIT:
      CHECK_OK(host_init(t->pair.host, &t->context, life->logger));
      break;
    case LISTEN:
      CHECK_OK(host_listen(t->pair.host, t->context, 0, handle, &t->pair.listen));
      break;
    case CONNECT: /* and is not finished */
      CHECK_OK(host_connect(t->pair.host, t->context, 0, handle, &t->pair.send));
      break;
    case CONNECTED:
      exchange_meet(&t->pair, t->context, handle);
      CHECK_OK(HOST_CALL(t->pair.host, closeListen, t->pair.listen));
      break;
    case REGISTER_SEND:
      CHECK_OK(host_register(t->pair.host, t->pair.send, t->send_data, BYTES, 1, &t->send_mhandle));
      break;
    case REGISTER_RECV:
      CHECK_OK(host_register(t->pair.host, t->pair.recv, t->recv_data, BYTES, 1, &t->recv_mhandle));
      break;
    case POST_RECV:
      CHECK_OK(host_irecv(t->pair.host, t->pair.recv, 1, t->recv_data, BYTES, t->recv_mhandle, NULL,
                          false, &t->recv_request));
      break;
    default:
      CHECK_OK(host_isend(t->pair.host, t->pair.send, t->send_data, BYTES, t->send_mhandle, NULL,
                          &t->send_request));
    }
  }
}

/* Memory that is deregistered is given up at once: what waits for it has failed then. */
static void tear_down(struct teardown *t) {
  int is_done, bytes;
  CHECK_OK(HOST_CALL(t->pair.host, deregMr, t->pair.recv, t->recv_mhandle));
  if (t->recv_request && !t->send_request) {
    CHECK(HOST_CALL(t->pair.host, test, t->recv_request, &is_done, &bytes) != NCCL_SUCCESS);
  }
  CHECK_OK(HOST_CALL(t->pair.host, closeRecv, t->pair.recv));
  CHECK_OK(HOST_CALL(t->pair.host, deregMr, t->pair.send, t->send_mhandle));
  CHECK_OK(HOST_CALL(t->pair.host, closeSend, t->pair.send));
  CHECK_OK(host_finalize(t->pair.host, t->context));
}

/* From 2.28 on NCCL closes what a failed connect gave, and tears it down like any other later:
 * twice (sendProxyConnect, sendProxyFree). So nothing is given. */
static void fail_to_connect(const struct life *life) {
  struct teardown t = { .pair.host = &life->host };
  unsigned char handle[HANDLE_BYTES];
  memset(handle, 0xa5, sizeof(handle));
  CHECK_OK(host_init(t.pair.host, &t.context, life->logger));
  CHECK(host_connect(t.pair.host, t.context, 0, handle, &t.pair.send) != NCCL_SUCCESS &&
        !t.pair.send);
  CHECK(host_connect(t.pair.host, t.context, 99, handle, &t.pair.send) != NCCL_SUCCESS &&
        !t.pair.send);
  tear_down(&t);
}

static void tear_down_net(const struct life *life) {
  for (enum step failed = INIT; failed <= STEPS; failed++) {
    struct teardown t = { .pair.host = &life->host };
    set_up(&t, life, failed);
    tear_down(&t);
  }
  CHECK_OK(HOST_CALL(&life->host, closeListen, NULL));
  fail_to_connect(life);
}

static void tear_down_group(const struct life *life, void *listen) {
  unsigned char bytes[HANDLE_BYTES] = { 0 };
  void *handle = bytes, *group = NULL;
  CHECK_OK(LIFE_COLLNET(life, 8)->connect(&handle, 1, 0, listen, &group)); /* no group: of one */
  CHECK(!group);
  CHECK_OK(LIFE_COLLNET(life, 8)->closeListen(listen));
  CHECK_OK(LIFE_COLLNET(life, 8)->deregMr(NULL, NULL));
  CHECK_OK(LIFE_COLLNET(life, 8)->closeColl(NULL));
  CHECK_OK(LIFE_COLLNET(life, 8)->closeListen(NULL));
}

/* Before init, which may have failed, and with a listener that comes to nothing. */
static void tear_down_collnet(const struct life *life) {
  void *context = NULL, *listen = NULL;
  unsigned char handle[HANDLE_BYTES] = { 0 };
  bool has_context = life->net >= 11;
  if (!life->collnet) {
    return;
  }
  tear_down_group(life, NULL);
  if (has_context) {
    CHECK_OK(LIFE_COLLNET(life, 11)->finalize(NULL));
    CHECK_OK(LIFE_COLLNET(life, 11)->init(&context, 1, life->logger));
    CHECK_OK(LIFE_COLLNET(life, 11)->listen(context, 0, handle, &listen));
  } else {
    CHECK_OK(LIFE_COLLNET(life, 8)->init(life->logger));
    CHECK_OK(LIFE_COLLNET(life, 8)->listen(0, handle, &listen));
  }
  tear_down_group(life, listen);
  if (has_context) {
    CHECK_OK(LIFE_COLLNET(life, 11)->finalize(context));
  }
}

/* Whatever step failed; then all of it works. */
static void case_tear_down(void) {
  struct life life;
  setenv("STRATUS_COLLNET", "full", 1);
  load(&life, cases_release);
  struct communicator communicator = { NULL, { .plugin = &life.tuner } };
  struct traces before = traces_now();
  tear_down_net(&life);
  tear_down_collnet(&life);
  end(&life, &communicator);
  check_nothing_is_left(&life, before);
  CHECK_OK(host_init(&life.host, &communicator.net, life.logger));
  exchange(&life, &communicator);
  end(&life, &communicator);
  check_nothing_is_left(&life, before);
}

static const struct cases_case cases[] = {
  { "order", case_order, 0 },
  { "several", case_several, 0 },
  { "network_fails", case_network_fails, 0 },
  { "no_devices", case_no_devices, 0 },
  { "two_releases", case_two_releases, 0 },
  { "levels_rccl", case_levels, false },
  { "levels_ncclx", case_levels, true },
  { "tear_down", case_tear_down, 0 },
  { "unload", case_unload, 0 },
  { 0 },
};

const struct cases_host life_host = {
  .name = "life",
  .title = "All tables in NCCL's order, and what is left of them",
  .leaves_threads = true,
  .cases = cases,
};
