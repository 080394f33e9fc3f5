/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips are measured first, while the path is idle. */
#include "net_plugin/tools/probe/load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/plugin/transfer.h"
#include "net_plugin/setup/connector.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/tools/rendezvous.h"

#define MESSAGE_BYTES (1u << 20) /* the largest request of NCCL's ring */
#define DEPTH 8
#define PINGS 100
#define TIMEOUT_NS (15 * NS_PER_S)
/* After the round trips: packets as long as the path takes them, as it says. Within BLOCK_NS, which
 * is four retransmissions of the first of them, at 1 Mb/s half a second. */
#define BLOCK_BYTES (64u << 10)
#define BLOCK_NS (3 * NS_PER_S)
/* Warm-up: until all flows are open and have reached their rate. */
#define WARM_UP_LEAST_NS (200 * NS_PER_MS)

#define PING_PURPOSE "stratus-net probe ping"
static const uint8_t hello[PEER_HELLO_BYTES];

/* Message memory of either side; its contents do not matter. */
static uint8_t *memory(void) {
  static uint8_t *bytes;
  bytes = bytes ? bytes : calloc(DEPTH, MESSAGE_BYTES);
  return bytes;
}

/* Without progress: a short sleep costs less than yielding to a busy thread. */
static void rest(unsigned *idle_count) {
  if (++*idle_count > 50) {
    usleep(20);
  }
}

/* ---- the receiving side ---- */

int load_offer(const struct device *device, struct load_service *service) {
  struct sockaddr_storage address = device->nics[0].address;
  socklen_t length = sizeof address;
  if (address.ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)&address)->sin6_port = 0;
  } else {
    ((struct sockaddr_in *)&address)->sin_port = 0;
  }
  int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  if (bind(fd, (const struct sockaddr *)&address, device->nics[0].address_bytes) != 0 ||
      listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
    int error = -errno;
    close(fd);
    return error;
  }
  int error = listener_open(device->nics, device->nic_count, service->handle, &service->listener);
  if (error) {
    close(fd);
    return error;
  }
  service->ping_server = fd;
  service->gate = peer_gate_new(fd, &service->key);
  peer_key_of_token(PING_PURPOSE, service->handle, HANDLE_BYTES, &service->key);
  service->ping_port =
      ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
                                          : ((const struct sockaddr_in *)&address)->sin_port);
  return 0;
}

/* Closing the socket tells the sender that the receiver is done. */
static int echo_pings(struct peer_gate *gate, int *socket) {
  uint64_t token;
  uint8_t said[PEER_HELLO_BYTES];
  int fd = -1;
  int error = gate ? peer_gate_next(gate, clock_now_ns() + TIMEOUT_NS, &fd, said) : -ENOMEM;
  *socket = fd;
  if (!error) {
    rendezvous_set_timeout(fd, TIMEOUT_NS);
  }
  for (int i = 0; i < PINGS && !error; i++) {
    error = rendezvous_read(fd, &token, sizeof token);
    error = error ? error : rendezvous_write(fd, &token, sizeof token);
  }
  if (!error) {
    rendezvous_set_timeout(fd, BLOCK_NS);
    error = rendezvous_read(fd, memory(), BLOCK_BYTES);
    error = error ? error : rendezvous_write(fd, &token, sizeof token);
    rendezvous_set_timeout(fd, TIMEOUT_NS);
  }
  return error;
}

static int accept_one(struct listener *listener, struct connection **connection) {
  uint64_t until_ns = clock_now_ns() + TIMEOUT_NS;
  unsigned idle_count = 0;
  int error = 0;
  *connection = NULL;
  while (!error && !*connection) {
    error = listener_accept(listener, connection);
    if (!error && clock_now_ns() > until_ns) {
      error = -ETIMEDOUT;
    }
    rest(&idle_count);
  }
  return error;
}

/* Receives until an empty message, which marks the end. */
static int receive_all(struct connection *connection) {
  struct request *requests[DEPTH];
  uint64_t posted = 0, done = 0;
  unsigned idle_count = 0;
  for (;;) {
    while (posted < done + DEPTH) {
      uint8_t *to = memory() + posted % DEPTH * MESSAGE_BYTES;
      int error =
          transfer_irecv(connection, to, MESSAGE_BYTES, NULL, NULL, &requests[posted % DEPTH]);
      if (error) {
        return error;
      }
      posted++;
    }
    bool is_done;
    size_t bytes = 0;
    int error = transfer_test(requests[done % DEPTH], &is_done, &bytes);
    if (error || (is_done && bytes == 0)) {
      return error;
    }
    done += is_done;
    if (is_done) {
      idle_count = 0;
    } else {
      rest(&idle_count);
    }
  }
}

int load_serve(struct load_service *service, bool is_path_only) {
  struct connection *connection = NULL;
  int ping_socket = -1;
  int error = memory() ? echo_pings(service->gate, &ping_socket) : -ENOMEM;
  peer_gate_free(service->gate);
  close(service->ping_server);
  error = error || is_path_only ? error : accept_one(service->listener, &connection);
  listener_close(service->listener);
  if (!error && connection) {
    error = receive_all(connection);
    transfer_close(connection);
  }
  if (ping_socket >= 0) {
    close(ping_socket);
  }
  return error;
}

/* ---- the sending side ---- */

struct pump {
  struct connection *connection;
  struct request *requests[DEPTH];
  uint64_t posted, done;
};

/* Sends until then. */
static int send_until(struct pump *pump, uint64_t until_ns) {
  unsigned idle_count = 0;
  while (clock_now_ns() < until_ns) {
    if (pump->posted < pump->done + DEPTH) {
      const uint8_t *from = memory() + pump->posted % DEPTH * MESSAGE_BYTES;
      struct request **request = &pump->requests[pump->posted % DEPTH];
      int error = transfer_isend(pump->connection, from, MESSAGE_BYTES, NULL, NULL, request);
      if (error) {
        return error;
      }
      pump->posted += *request != NULL;
    }
    bool is_done = false;
    size_t bytes;
    int error = pump->done < pump->posted
                    ? transfer_test(pump->requests[pump->done % DEPTH], &is_done, &bytes)
                    : 0;
    if (error) {
      return error;
    }
    pump->done += is_done;
    if (is_done) {
      idle_count = 0;
    } else if (pump->posted == pump->done + DEPTH) {
      rest(&idle_count);
    }
  }
  return 0;
}

/* Completes all requests, then sends the empty message. */
static int send_end(struct pump *pump) {
  uint64_t until_ns = clock_now_ns() + TIMEOUT_NS;
  bool has_ended = false;
  unsigned idle_count = 0;
  while (pump->done < pump->posted || !has_ended) {
    bool is_done = false;
    size_t bytes;
    int error = 0;
    if (pump->done == pump->posted) {
      struct request **request = &pump->requests[pump->posted % DEPTH];
      error = transfer_isend(pump->connection, memory(), 0, NULL, NULL, request);
      has_ended = !error && *request;
      pump->posted += has_ended;
    }
    if (!error && pump->done < pump->posted) {
      error = transfer_test(pump->requests[pump->done % DEPTH], &is_done, &bytes);
    }
    if (error || clock_now_ns() > until_ns) {
      return error ? error : -ETIMEDOUT;
    }
    pump->done += is_done;
    rest(&idle_count);
  }
  return 0;
}

static int load_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void read_bytes(struct connection *connection, uint64_t bytes[WIRE_MAX_LANES]) {
  for (unsigned i = 0; i < connection_lane_count(connection); i++) {
    struct link_lane_view view;
    connection_view_lane(connection, i, &view);
    bytes[i] = view.bytes_acked;
  }
}

static int measure(struct pump *pump, uint64_t duration_ns, struct probe_result *result) {
  uint64_t before[WIRE_MAX_LANES], after[WIRE_MAX_LANES];
  double rates[WIRE_MAX_LANES];
  uint64_t warm_up_ns = duration_ns / 2 > WARM_UP_LEAST_NS ? duration_ns / 2 : WARM_UP_LEAST_NS;
  int error = send_until(pump, clock_now_ns() + warm_up_ns);
  if (error) {
    return error;
  }
  uint64_t start_ns = clock_now_ns();
  read_bytes(pump->connection, before);
  error = send_until(pump, start_ns + duration_ns);
  read_bytes(pump->connection, after);
  double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
  unsigned flows = 0; /* that carried anything */
  for (unsigned i = 0; i < connection_lane_count(pump->connection); i++) {
    if (after[i] > before[i]) {
      rates[flows] = (double)(after[i] - before[i]) * 8e-9 / seconds;
      result->gbps += rates[flows++];
    }
  }
  result->flows = flows;
  if (flows == 0) {
    return error ? error : send_end(pump);
  }
  qsort(rates, flows, sizeof rates[0], load_compare);
  result->flow_min_gbps = rates[0];
  result->flow_median_gbps = rates[flows / 2];
  result->flow_max_gbps = rates[flows - 1];
  return error ? error : send_end(pump);
}

static int exchange_pings(int fd, double *rtt_us) {
  double times_us[PINGS];
  for (int i = 0; i < PINGS; i++) {
    uint64_t start_ns = clock_now_ns(), token = (uint64_t)i;
    int error = rendezvous_write(fd, &token, sizeof token);
    error = error ? error : rendezvous_read(fd, &token, sizeof token);
    if (error) {
      return error;
    }
    times_us[i] = (double)(clock_now_ns() - start_ns) * 1e-3;
  }
  qsort(times_us, PINGS, sizeof times_us[0], load_compare);
  *rtt_us = times_us[PINGS / 2];
  return 0;
}

/* -EMSGSIZE: the long packets do not arrive, though the short ones did. */
static int send_block(int fd) {
  uint64_t token;
  rendezvous_set_timeout(fd, BLOCK_NS);
  int error = rendezvous_write(fd, memory(), BLOCK_BYTES);
  error = error ? error : rendezvous_read(fd, &token, sizeof token);
  rendezvous_set_timeout(fd, TIMEOUT_NS);
  return error ? -EMSGSIZE : 0;
}

/* From this NIC to the first address of the peer. */
static int ping(const struct nic *nic, const uint8_t bytes[HANDLE_BYTES], int port,
                struct probe_result *result, int *ping_socket) {
  struct handle handle;
  struct sockaddr_storage from = nic->address;
  if (handle_decode(bytes, &handle) != 0) {
    return -EPROTO;
  }
  struct sockaddr_storage *to = &handle.addresses[0];
  bool is_six = to->ss_family == AF_INET6;
  if (is_six) {
    ((struct sockaddr_in6 *)to)->sin6_port = htons((uint16_t)port);
    ((struct sockaddr_in6 *)&from)->sin6_port = 0;
  } else {
    ((struct sockaddr_in *)to)->sin_port = htons((uint16_t)port);
    ((struct sockaddr_in *)&from)->sin_port = 0;
  }
  int fd = *ping_socket = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  rendezvous_set_timeout(fd, TIMEOUT_NS);
  int error = from.ss_family == to->ss_family &&
                      bind(fd, (const struct sockaddr *)&from, nic->address_bytes) != 0
                  ? -errno
                  : 0;
  if (!error && connect(fd, (const struct sockaddr *)to, tcp_address_bytes(to)) != 0) {
    error = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
  }
  struct peer_key key;
  peer_key_of_token(PING_PURPOSE, bytes, HANDLE_BYTES, &key);
  error = error ? error : peer_call(fd, &key, hello, clock_now_ns() + TIMEOUT_NS);
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (!error && getsockopt(fd, is_six ? IPPROTO_IPV6 : IPPROTO_IP, is_six ? IPV6_MTU : IP_MTU, &mtu,
                           &length) == 0) {
    result->mtu = (unsigned)mtu;
  }
  error = error ? error : exchange_pings(fd, &result->rtt_us);
  return error ? error : send_block(fd);
}

static int connect_one(const struct device *device, uint8_t handle[HANDLE_BYTES],
                       struct connection **connection) {
  uint64_t until_ns = clock_now_ns() + TIMEOUT_NS;
  unsigned idle_count = 0;
  int error = 0;
  *connection = NULL;
  while (!error && !*connection) {
    error = connector_connect(device->nics, device->nic_count, -1, 0, handle, connection);
    if (!error && clock_now_ns() > until_ns) {
      error = -ETIMEDOUT;
    }
    rest(&idle_count);
  }
  return error;
}

int load_send(const struct device *device, uint8_t handle[HANDLE_BYTES], int ping_port,
              const struct probe_load *load, struct probe_result *result) {
  struct pump pump = { 0 };
  int ping_socket = -1;
  *result = (struct probe_result){ 0 };
  int error = memory() ? ping(&device->nics[0], handle, ping_port, result, &ping_socket) : -ENOMEM;
  bool is_path_only = load->duration_ns == 0;
  error = error || is_path_only ? error : connect_one(device, handle, &pump.connection);
  if (!error && !is_path_only) {
    error = measure(&pump, load->duration_ns, result);
    uint8_t nothing;
    if (!error && rendezvous_read(ping_socket, &nothing, 1) != -ECONNRESET) {
      error = -ETIMEDOUT; /* the receiver has everything and did not close */
    }
    transfer_close(pump.connection);
  }
  if (ping_socket >= 0) {
    close(ping_socket);
  }
  result->is_measured = !error;
  return error;
}
