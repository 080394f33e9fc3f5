/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net probe: how fast the network between two hosts is for this transport, and what a
 * profile should say about it. One host listens, the other sends for a while over one connection of
 * the plugin itself; what set-up needs to know (NCCL would pass it on) goes over a plain TCP
 * connection. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/engine/connection.h"
#include "net_plugin/observe/observe.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/plugin/transfer.h"
#include "net_plugin/setup/connector.h"
#include "net_plugin/setup/setup.h"
#include "net_plugin/tools/meet.h"
#include "net_plugin/tools/net_tool.h"

#define MESSAGE_BYTES (1u << 20) /* NCCL's ring asks for up to this much at once */
#define DEPTH 8
#define PINGS 200
/* The first moments, until all flows are open and have found their rate, are left out. */
#define WARM_UP_NS (500 * NS_PER_MS)

static struct {
  bool is_listening, is_profile;
  int64_t port;
  uint64_t duration_ns;
} options = { .port = 29590, .duration_ns = 3 * NS_PER_S };

const struct cli_option net_tool_probe_options[] = {
  { .name = "listen",
    .type = CLI_FLAG,
    .value = &options.is_listening,
    .help = "be the other host: wait for one probe, then end" },
  { .name = "port",
    .type = CLI_INT,
    .value = &options.port,
    .argument = "N",
    .help = "TCP port to meet on",
    .low = 1,
    .high = 65535 },
  { .name = "time",
    .type = CLI_DURATION,
    .value = &options.duration_ns,
    .argument = "TIME",
    .help = "how long to measure" },
  { .name = "profile",
    .type = CLI_FLAG,
    .value = &options.is_profile,
    .help = "print a profile for STRATUS_PROFILE instead of a table" },
  { 0 },
};

struct result {
  unsigned flows;
  double gbps, rtt_us;
  double flow_gbps[WIRE_MAX_LANES]; /* ascending */
};

/* ---- the listening side ---- */

static int await_call(int *fd) {
  struct meet_place place = { .port = (int)options.port };
  int server, status = meet_listen(&place, &server);
  if (status != CLI_OK) {
    return status;
  }
  fprintf(stderr, "stratus-net: waiting on port %d; on the other host: stratus-net probe HOST\n",
          place.port);
  status = meet_accept(server, fd);
  close(server);
  return status;
}

static int receive_all(struct connection *connection, uint8_t *memory) {
  struct request *requests[DEPTH];
  uint64_t posted = 0, done = 0;
  for (;;) {
    while (posted < done + DEPTH) {
      uint8_t *to = memory + posted % DEPTH * MESSAGE_BYTES;
      int error = transfer_irecv(connection, to, MESSAGE_BYTES, NULL, NULL, NULL,
                                 &requests[posted % DEPTH]);
      if (error) {
        return error;
      }
      posted++;
    }
    bool is_done;
    size_t bytes = 0;
    int error = transfer_test(requests[done % DEPTH], &is_done, &bytes);
    if (error) {
      return error;
    }
    if (is_done && bytes == 0) {
      return 0; /* the end, as agreed below */
    }
    done += is_done;
  }
}

static int accept_one(struct listener *listener, struct connection **connection) {
  uint64_t until_ns = clock_now_ns() + MEET_PATIENCE_NS;
  int error = 0;
  *connection = NULL;
  while (!error && !*connection) {
    error = listener_accept(listener, connection);
    if (clock_now_ns() > until_ns) {
      error = -ETIMEDOUT;
    }
  }
  return error;
}

static int listen_side(const struct device *device, uint8_t *memory) {
  uint8_t handle[HANDLE_BYTES], ping[8];
  struct listener *listener;
  struct connection *connection;
  int fd = -1, status = await_call(&fd);
  if (status != CLI_OK) {
    return status;
  }
  int error = listener_open(device->nics, device->nic_count, handle, &listener);
  if (!error) {
    error = meet_write(fd, handle, sizeof handle);
    for (int i = 0; i < PINGS && !error; i++) {
      error = meet_read(fd, ping, sizeof ping);
      error = error ? error : meet_write(fd, ping, sizeof ping);
    }
    error = error ? error : accept_one(listener, &connection);
    listener_close(listener);
  }
  if (!error) {
    error = receive_all(connection, memory);
    transfer_close(connection);
  }
  close(fd);
  return error ? cli_fail("the probe ended early: %s", strerror(-error)) : CLI_OK;
}

/* ---- the sending side ---- */

struct load {
  struct connection *connection;
  uint8_t *memory;
  struct request *requests[DEPTH];
  uint64_t posted, done;
};

/* Keeps the connection busy until then. */
static int send_until(struct load *load, uint64_t until_ns) {
  while (clock_now_ns() < until_ns) {
    if (load->posted < load->done + DEPTH) {
      const uint8_t *from = load->memory + load->posted % DEPTH * MESSAGE_BYTES;
      int error = transfer_isend(load->connection, from, MESSAGE_BYTES, NULL, NULL, NULL,
                                 &load->requests[load->posted % DEPTH]);
      if (error) {
        return error;
      }
      load->posted += load->requests[load->posted % DEPTH] != NULL;
    }
    bool is_done = false;
    size_t bytes;
    int error = load->done < load->posted
                    ? transfer_test(load->requests[load->done % DEPTH], &is_done, &bytes)
                    : 0;
    if (error) {
      return error;
    }
    load->done += is_done;
  }
  return 0;
}

/* Lets everything arrive, then says that this was all. */
static int send_end(struct load *load) {
  uint64_t until_ns = clock_now_ns() + MEET_PATIENCE_NS;
  bool has_ended = false;
  while (load->done < load->posted || !has_ended) {
    bool is_done;
    size_t bytes;
    int error = 0;
    if (load->done == load->posted) {
      has_ended = true;
      error = transfer_isend(load->connection, load->memory, 0, NULL, NULL, NULL,
                             &load->requests[load->posted++ % DEPTH]);
    }
    error = error ? error : transfer_test(load->requests[load->done % DEPTH], &is_done, &bytes);
    if (error || clock_now_ns() > until_ns) {
      return error ? error : -ETIMEDOUT;
    }
    load->done += is_done;
  }
  return 0;
}

static int compare_rates(const void *a, const void *b) {
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

static int measure(struct load *load, struct result *result) {
  uint64_t before[WIRE_MAX_LANES], after[WIRE_MAX_LANES];
  int error = send_until(load, clock_now_ns() + WARM_UP_NS);
  if (error) {
    return error;
  }
  uint64_t start_ns = clock_now_ns();
  read_bytes(load->connection, before);
  error = send_until(load, start_ns + options.duration_ns);
  read_bytes(load->connection, after);
  double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
  result->flows = connection_lane_count(load->connection);
  for (unsigned i = 0; i < result->flows; i++) {
    result->flow_gbps[i] = (double)(after[i] - before[i]) * 8e-9 / seconds;
    result->gbps += result->flow_gbps[i];
  }
  qsort(result->flow_gbps, result->flows, sizeof result->flow_gbps[0], compare_rates);
  return error ? error : send_end(load);
}

static int ping(int fd, double *rtt_us) {
  double times_us[PINGS];
  for (int i = 0; i < PINGS; i++) {
    uint64_t start_ns = clock_now_ns(), token = (uint64_t)i;
    int error = meet_write(fd, &token, sizeof token);
    error = error ? error : meet_read(fd, &token, sizeof token);
    if (error) {
      return error;
    }
    times_us[i] = (double)(clock_now_ns() - start_ns) * 1e-3;
  }
  qsort(times_us, PINGS, sizeof times_us[0], compare_rates);
  *rtt_us = times_us[PINGS / 2];
  return 0;
}

static int connect_one(const struct device *device, uint8_t handle[HANDLE_BYTES],
                       struct connection **connection) {
  int error = 0;
  *connection = NULL;
  while (!error && !*connection) { /* ends by STRATUS_CONNECT_TIMEOUT */
    error = connector_connect(device->nics, device->nic_count, -1, handle, connection);
  }
  return error;
}

static int send_side(const struct device *device, const char *host, uint8_t *memory,
                     struct result *result) {
  uint8_t handle[HANDLE_BYTES];
  struct load load = { .memory = memory };
  struct meet_place place;
  int fd, status = meet_parse(host, (int)options.port, &place);
  status = status == CLI_OK ? meet_call(&place, "stratus-net probe --listen", &fd) : status;
  if (status != CLI_OK) {
    return status;
  }
  int error = meet_read(fd, handle, sizeof handle);
  error = error ? error : ping(fd, &result->rtt_us);
  error = error ? error : connect_one(device, handle, &load.connection);
  if (!error) {
    error = measure(&load, result);
    transfer_close(load.connection);
  }
  close(fd);
  return error ? cli_fail("the probe of %s failed: %s", host, strerror(-error)) : CLI_OK;
}

/* ---- what comes out ---- */

/* Two digits: more would claim a precision that a network does not have. */
static unsigned rounded_mbps(double gbps) {
  unsigned mbps = (unsigned)(gbps * 1000), step = 1;
  while (mbps / step >= 100) {
    step *= 10;
  }
  mbps = (mbps + step / 2) / step * step;
  return mbps ? mbps : 1;
}

static void print_profile(const char *host, const struct result *result) {
  char date[16];
  time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  printf("schema = 1\n[meta]\nid = probe-%s\ncreated = %s\n", date, date);
  printf("source = \"stratus-net probe to %s, one connection of %u flows, %.1f s\"\n", host,
         result->flows, (double)options.duration_ns * 1e-9);
  printf("[net]\nspeed_mbps = %u\n", rounded_mbps(result->gbps));
}

static void print_table(const char *nic, const struct result *result) {
  const double *rates = result->flow_gbps;
  printf("NIC %s, %u flows: %.2f Gb/s together\n", nic, result->flows, result->gbps);
  printf("one flow: slowest %.2f, median %.2f, fastest %.2f Gb/s\n", rates[0],
         rates[result->flows / 2], rates[result->flows - 1]);
  printf("round trip of a plain TCP connection: %.0f us (median of %d)\n", result->rtt_us, PINGS);
}

static int print_json(const char *nic, const struct result *result) {
  json_t *flows = json_array();
  for (unsigned i = 0; i < result->flows; i++) {
    json_array_append_new(flows, json_real(result->flow_gbps[i]));
  }
  json_t *all = json_pack("{s:s, s:i, s:f, s:o, s:f, s:i}", "nic", nic, "flows", (int)result->flows,
                          "gbps", result->gbps, "flow_gbps", flows, "rtt_us", result->rtt_us,
                          "speed_mbps", (int)rounded_mbps(result->gbps));
  bool is_written = all && json_dumpf(all, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
  json_decref(all);
  return is_written ? CLI_OK : cli_fail("cannot write the result");
}

static int print_result(const char *host, const char *nic, const struct result *result,
                        bool is_json) {
  if (is_json) {
    return print_json(nic, result);
  }
  if (options.is_profile) {
    print_profile(host, result);
  } else {
    print_table(nic, result);
  }
  return CLI_OK;
}

int net_tool_probe(int argument_count, char **arguments, bool is_json) {
  static struct discovery found; /* too large for the stack */
  if (options.is_listening != (argument_count == 0)) {
    cli_fail("probe: give either the HOST to probe or --listen");
    return CLI_USAGE;
  }
  if (discovery_run(&found)) {
    return CLI_FAILED;
  }
  int status = CLI_FAILED;
  uint8_t *memory = calloc(DEPTH, MESSAGE_BYTES);
  setup_start();
  observe_start();
  if (found.devices.count == 0) {
    cli_fail("there is no usable interface; see stratus-net devices");
  } else if (!memory) {
    cli_fail("out of memory");
  } else if (options.is_listening) {
    status = listen_side(&found.devices.devices[0], memory);
  } else {
    const struct device *device = &found.devices.devices[0];
    struct result result = { 0 };
    status = send_side(device, arguments[0], memory, &result);
    if (status == CLI_OK) {
      status = print_result(arguments[0], device->name, &result, is_json);
    }
  }
  setup_stop();
  free(memory);
  discovery_free(&found);
  return status;
}
