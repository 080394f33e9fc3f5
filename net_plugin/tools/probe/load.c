/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips are measured first, while the path is idle. */
#include "net_plugin/tools/probe/load.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/descriptor.h"
#include "common/peer_proof.h"
#include "common/plain.h"
#include "common/quantile.h"
#include "common/random.h"
#include "net_plugin/lane/tcp_address.h"
#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/perf/session.h"
#include "net_plugin/tools/rendezvous.h"

#define PING_PURPOSE "stratus probe ping"
static const char peer[] = "the other host";
static const uint8_t hello[PEER_HELLO_BYTES];

/* ---- the rate: both sides ---- */

static int send_messages(int fd, const struct probe_load *load, struct probe_result *result) {
  char device[16], bytes[16];
  uint64_t warmup_ns = load->duration_ns / 2;
  struct plan plan = {
    .test = PLAN_BANDWIDTH,
    .sizes_text = bytes,
    .devices_text = device,
    .connections = 1,
    .time_ns = load->duration_ns,
    .warmup_ns = warmup_ns > LOAD_WARM_UP_LEAST_NS ? warmup_ns : LOAD_WARM_UP_LEAST_NS,
    .timeout_ns = LOAD_TIMEOUT_NS,
  };
  snprintf(device, sizeof device, "%u", load->device);
  snprintf(bytes, sizeof bytes, "%u", LOAD_MESSAGE_BYTES);
  json_t *report = NULL;
  int status = plan_make(&plan);
  status = status ? status : session_open(&plan);
  status = status ? status : session_run(fd, peer, &report);
  if (status == CLI_OK) {
    const json_t *round = json_array_get(json_object_get(report, "rounds"), 0);
    result->gbps = json_number_value(json_object_get(round, "gbytes_per_s")) * 8;
  }
  json_decref(report);
  return status;
}

static void drive(int fd, bool is_sender, const struct probe_load *load,
                  struct probe_result *result) {
  setenv("STRATUS_COMPRESS", "off", 1); /* what is sent is invented */
  int status = is_sender ? send_messages(fd, load, result) : session_serve(fd, peer, NULL, NULL);
  result->is_measured = status == CLI_OK;
  if (status != CLI_OK) {
    snprintf(result->error, sizeof result->error, "%.*s", PROBE_ERROR_MAX - 1, cli_first_failure());
    plain_text(result->error);
  }
}

/* In a process of its own: connections of a driver that failed cannot be closed. */
static int measure(int fd, bool is_sender, const struct probe_load *load,
                   struct probe_result *result) {
  int ends[2], error = pipe2(ends, O_CLOEXEC) != 0 ? -errno : 0;
  if (error) {
    return error;
  }
  pid_t child = fork();
  if (child == 0) {
    drive(fd, is_sender, load, result);
    _exit(write(ends[1], result, sizeof *result) != (ssize_t)sizeof *result);
  }
  error = child < 0 ? -errno : 0;
  close(ends[1]);
  if (!error && read(ends[0], result, sizeof *result) != (ssize_t)sizeof *result) {
    error = -ECHILD; /* it has crashed */
  }
  close(ends[0]);
  if (child > 0) {
    waitpid(child, NULL, 0);
  }
  return error || result->is_measured ? error : -EIO;
}

/* Of ping `number`, or the answer to it. After LOAD_PINGS short ones comes one of long packets. */
static int move_ping(int fd, int number, bool is_answer, bool is_send) {
  static uint8_t bytes[LOAD_BLOCK_BYTES];
  bool is_block = number == LOAD_PINGS;
  return peer_move(fd, bytes, is_block && !is_answer ? LOAD_BLOCK_BYTES : sizeof(uint64_t), is_send,
                   clock_now_ns() + (is_block ? LOAD_BLOCK_NS : LOAD_TIMEOUT_NS));
}

/* ---- the receiving side ---- */

int load_offer(const struct device *device, struct load_service *service) {
  const struct nic *nic = &device->nics[0];
  struct handle handle = { .count = 1 };
  int error = random_secret(handle.secret, sizeof handle.secret);
  int fd = error ? error : tcp_socket_listen(nic, &handle.addresses[0]);
  if (fd < 0) {
    return fd;
  }
  if (nic->advertised.ss_family != AF_UNSPEC) {
    unsigned port = tcp_address_port(&handle.addresses[0]);
    handle.addresses[0] = nic->advertised;
    tcp_address_set_port(&handle.addresses[0], port);
  }
  handle_encode(&handle, service->handle);
  service->listener.fd = fd;
  service->listener.count = 0;
  peer_key_of_token(PING_PURPOSE, service->handle, HANDLE_BYTES, &service->listener.key);
  return 0;
}

static int echo_pings(struct load_service *service, int *socket) {
  uint8_t said[PEER_HELLO_BYTES];
  int fd = -1;
  int error = peer_accept(&service->listener, clock_now_ns() + LOAD_TIMEOUT_NS, &fd, said);
  *socket = fd;
  if (!error) {
    rendezvous_set_timeout(fd, LOAD_TIMEOUT_NS);
  }
  for (int i = 0; i <= LOAD_PINGS && !error; i++) {
    error = move_ping(fd, i, false, false);
    error = error ? error : move_ping(fd, i, true, true);
  }
  return error;
}

void load_serve(struct load_service *service, const struct probe_load *load) {
  struct probe_result unused = { 0 };
  int fd = -1, error = echo_pings(service, &fd);
  peer_listener_close(&service->listener);
  if (!error) {
    measure(fd, false, load, &unused);
  }
  descriptor_close(fd);
}

/* ---- the sending side ---- */

/* -EMSGSIZE: the long packets do not arrive, though the short ones did. */
static int exchange_pings(int fd, double *rtt_us) {
  double times_us[LOAD_PINGS + 1]; /* the last is not one of them */
  for (int i = 0; i <= LOAD_PINGS; i++) {
    uint64_t start_ns = clock_now_ns();
    int error = move_ping(fd, i, false, true);
    error = error ? error : move_ping(fd, i, true, false);
    if (error) {
      return i == LOAD_PINGS ? -EMSGSIZE : error;
    }
    times_us[i] = (double)(clock_now_ns() - start_ns) * 1e-3;
  }
  *rtt_us = quantile_median(times_us, LOAD_PINGS);
  return 0;
}

/* From the device's NIC to the address of the handle. */
int load_dial(const struct device *device, const uint8_t bytes[HANDLE_BYTES],
              struct probe_result *result) {
  struct handle handle;
  struct sockaddr_storage from = device->nics[0].address;
  if (handle_decode(bytes, &handle) != 0) {
    return -EPROTO;
  }
  const struct sockaddr_storage *to = &handle.addresses[0];
  bool is_six = to->ss_family == AF_INET6;
  tcp_address_set_port(&from, 0);
  int fd = rendezvous_dial((const struct sockaddr *)to, tcp_address_bytes(to),
                           from.ss_family == to->ss_family ? (const struct sockaddr *)&from : NULL,
                           LOAD_DIAL_NS);
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (fd >= 0 && getsockopt(fd, is_six ? IPPROTO_IPV6 : IPPROTO_IP, is_six ? IPV6_MTU : IP_MTU,
                            &mtu, &length) == 0) {
    result->mtu = (unsigned)mtu;
  }
  return fd;
}

int load_send(int fd, const uint8_t handle[HANDLE_BYTES], const struct probe_load *load,
              struct probe_result *result) {
  struct peer_key key;
  peer_key_of_token(PING_PURPOSE, handle, HANDLE_BYTES, &key);
  int error = peer_call(fd, &key, hello, clock_now_ns() + LOAD_TIMEOUT_NS);
  error = error ? error : exchange_pings(fd, &result->rtt_us);
  error = error ? error : measure(fd, true, load, result);
  close(fd);
  return error;
}
