/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-net perf: measures a net plugin, driven as NCCL drives it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/rendezvous.h"
#include "net_plugin/tools/net_tool.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/report.h"
#include "net_plugin/tools/perf/session.h"
#include "net_plugin/tools/perf/control_channel.h"

#define PORT 29591
#define PURPOSE "stratus-net perf"
#define CLIENT_COMMAND "stratus-net perf HOST"

static struct plan_options options = { .timeout_ns = 30 * NS_PER_S };
static bool is_listening, is_forever;
static struct peer_key key;

const struct cli_option net_tool_perf_options[] = {
  { .name = "listen",
    .type = CLI_FLAG,
    .value = &is_listening,
    .help = "run as the server, on [ADDRESS[:PORT]]; the client sends it the options" },
  { .name = "forever",
    .type = CLI_FLAG,
    .value = &is_forever,
    .help = "with --listen: serve clients until killed, one after another" },
  { .name = "plugin",
    .type = CLI_STRING,
    .value = &options.plugin,
    .argument = "NAME|PATH",
    .help = "any net plugin, by its name in NCCL_NET_PLUGIN or by path; each side loads its own "
            "[stratus, of this installation]" },
  { .name = "test",
    .type = CLI_WORD,
    .value = &options.test,
    .argument = PLAN_TEST_WORDS,
    .help = "what to measure" },
  { .name = "shape",
    .type = CLI_WORD,
    .value = &options.shape,
    .argument = PLAN_SHAPE_WORDS,
    .help = "message sizes and depth that NCCL uses with this protocol; raw: any" },
  { .name = "bytes",
    .type = CLI_STRING,
    .value = &options.sizes,
    .argument = "LIST",
    .help = "message sizes, e.g. 8,1K,512K [those of the shape; latency 8; rate 1K,4K,16K]" },
  { .name = "depth",
    .type = CLI_INT,
    .value = &options.depth,
    .argument = "N",
    .help = "requests in flight per connection; 0: that of the shape",
    .low = 0,
    .high = PLAN_DEPTH_MAX },
  { .name = "connections",
    .type = CLI_INT,
    .value = &options.connections,
    .argument = "N",
    .help = "connections in each direction; 0: 1",
    .low = 0,
    .high = PLAN_CONNECTIONS_MAX },
  { .name = "time",
    .type = CLI_DURATION,
    .value = &options.time_ns,
    .argument = "TIME",
    .help = "duration of the measurement of each size; 0: 2s, unless --count is given" },
  { .name = "count",
    .type = CLI_INT,
    .value = &options.count,
    .argument = "N",
    .help = "measure this many messages per connection instead of a time",
    .low = 0,
    .high = INT64_C(1) << 40 },
  { .name = "warmup",
    .type = CLI_STRING,
    .value = &options.warmup,
    .argument = "TIME|N",
    .help = "warm-up before the measurement: a time, or with --count messages [500ms; a tenth of "
            "the count]" },
  { .name = "devices",
    .type = CLI_STRING,
    .value = &options.devices,
    .argument = "LIST",
    .help = "devices of the plugin, which connections use in turn, e.g. 0,1 [0]" },
  { .name = "fuse",
    .type = CLI_FLAG,
    .value = &options.is_fused,
    .help = "merge these devices into one (makeVDevice)" },
  { .name = "data",
    .type = CLI_STRING,
    .value = &options.data,
    .argument = "FILE|" CONTENTS_WORDS,
    .help = "what messages contain: a file of the side that sends, or invented numbers with "
            "exponents as gradients have them "
            "[bytes that cannot be compressed]" },
  { .name = "check",
    .type = CLI_WORD,
    .value = &options.check,
    .argument = PLAN_CHECK_WORDS,
    .help = "verify the contents of messages; auto: with --count" },
  { .name = "flows",
    .type = CLI_FLAG,
    .value = &options.has_flows,
    .help = "also show each TCP connection: bytes, rate, RTT, retransmits" },
  { .name = "idle",
    .type = CLI_DURATION,
    .value = &options.idle_ns,
    .argument = "TIME",
    .help = "afterwards keep the connections idle for this time and report the CPU time used" },
  { .name = "timeout",
    .type = CLI_DURATION,
    .value = &options.timeout_ns,
    .argument = "TIME",
    .help = "fail after this time without progress" },
  { 0 },
};

/* ---- server ---- */

/* The client's plan, with the server's own plugin: nothing that a client sends names a file. */
static int receive_plan(struct control_channel *channel, struct plan *plan) {
  json_t *message;
  int status = control_channel_receive(channel, "plan", PERF_GREETING_TIMEOUT_NS, &message);
  if (status == CLI_OK) {
    status = plan_from_json(plan, json_object_get(message, "plan"));
    json_decref(message);
  }
  if (status == CLI_OK && options.data) {
    plan_choose_data(plan, options.data);
  }
  snprintf(plan->plugin, sizeof plan->plugin, "%s", options.plugin ? options.plugin : "");
  return status;
}

static int serve(int fd) {
  static struct plan plan;
  struct control_channel channel;
  json_t *report = NULL;
  int status = control_channel_open(&channel, fd, "the client");
  status = status == CLI_OK ? receive_plan(&channel, &plan) : status;
  status = status == CLI_OK ? session_open(&plan, false) : status;
  if (status == CLI_OK) {
    status = session_run(&channel, &report);
  } else {
    control_channel_abort(&channel, failure_text());
  }
  json_decref(report);
  control_channel_close(&channel);
  return status;
}

/* One process per client: a plugin cannot be unloaded. */
static int serve_forever(int server, struct peer_gate *gate) {
  uint8_t hello[PEER_HELLO_BYTES];
  for (;;) {
    int fd, status = rendezvous_accept_proven(gate, UINT64_MAX, &fd, hello);
    if (status != CLI_OK) {
      return status;
    }
    pid_t child = fork();
    if (child == 0) {
      close(server);
      peer_gate_free(gate);
      _exit(serve(fd));
    }
    close(fd);
    if (child < 0) {
      return cli_fail("cannot start a process: %s", strerror(errno));
    }
    waitpid(child, NULL, 0);
  }
}

static int run_server(const char *where) {
  struct rendezvous_address place = { .port = PORT };
  int server, fd, status = where ? rendezvous_parse(where, PORT, &place) : CLI_OK;
  status =
      status == CLI_OK ? rendezvous_listener_key(PURPOSE, &place, CLIENT_COMMAND, &key) : status;
  status = status == CLI_OK ? rendezvous_listen(&place, &server) : status;
  if (status != CLI_OK) {
    return status;
  }
  fprintf(stderr, "stratus-net: listening on port %d; on the other host: " CLIENT_COMMAND "\n",
          place.port);
  uint8_t hello[PEER_HELLO_BYTES];
  struct peer_gate *gate = peer_gate_new(server, &key);
  if (gate && is_forever) {
    return serve_forever(server, gate);
  }
  status = rendezvous_accept_proven(gate, UINT64_MAX, &fd, hello);
  peer_gate_free(gate);
  close(server);
  return status == CLI_OK ? serve(fd) : status;
}

/* ---- client ---- */

static int run_client(const char *host, bool is_json) {
  static struct plan plan;
  struct rendezvous_address place;
  struct control_channel channel;
  json_t *report = NULL;
  static const uint8_t hello[PEER_HELLO_BYTES];
  int fd, status = plan_make(&plan, &options);
  status = status == CLI_OK ? rendezvous_parse(host, PORT, &place) : status;
  status = status == CLI_OK ? rendezvous_caller_key(PURPOSE, &place, &key) : status;
  status = status == CLI_OK ? session_open(&plan, true) : status;
  status = status == CLI_OK ? rendezvous_connect(&place, "stratus-net perf --listen", &fd) : status;
  status = status == CLI_OK ? rendezvous_prove(&key, hello, fd) : status;
  if (status != CLI_OK) {
    return status;
  }
  status = control_channel_open(&channel, fd, "the server");
  if (status == CLI_OK) {
    status = control_channel_send(&channel, json_pack("{s:o}", "plan", plan_to_json(&plan)));
  }
  if (status == CLI_OK) {
    status = session_run(&channel, &report);
  }
  control_channel_close(&channel);
  if (status == CLI_OK && is_json) {
    status = report_dump(report);
  } else if (status == CLI_OK) {
    report_print(&plan, report);
  }
  status = status == CLI_OK ? report_judge(report) : status;
  json_decref(report);
  return status;
}

int net_tool_perf(int argument_count, char **arguments, bool is_json) {
  const char *where = argument_count ? arguments[0] : NULL;
  if (is_listening) {
    if (options.test || options.shape || options.sizes || options.devices || options.count ||
        options.time_ns) {
      cli_fail(
          "perf: the client chooses what to measure; --listen takes only --forever, --plugin and "
          "--data");
      return CLI_USAGE;
    }
    return run_server(where);
  }
  if (!where || is_forever) {
    cli_fail("perf: give either the HOST of a server or --listen");
    return CLI_USAGE;
  }
  return run_client(where, is_json);
}
