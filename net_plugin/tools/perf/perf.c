/* SPDX-License-Identifier: Apache-2.0 */
/* stratus perf: measures a net plugin, driven as NCCL drives it. */
#include <stdio.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/tools/commands.h"
#include "net_plugin/tools/document.h"
#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/report.h"
#include "net_plugin/tools/perf/session.h"
#include "net_plugin/tools/rendezvous.h"

#define PORT 29591
#define PURPOSE "stratus perf"

static struct plan plan = { .connections = 1,
                            .time_ns = 2 * NS_PER_S,
                            .warmup_ns = 500 * NS_PER_MS,
                            .timeout_ns = 30 * NS_PER_S };
static bool is_listening;

static const struct cli_option option_rows[] = {
  { "listen", 0, CLI_FLAG, &is_listening, NULL,
    "run as the server, on [ADDRESS[:PORT]]; the client sends it the options", 0, 0 },
  { "plugin", 0, CLI_STRING, &plan.plugin, "NAME|PATH",
    "another net plugin, by its name in NCCL_NET_PLUGIN or by path; each side loads its own "
    "[stratus, of this installation]",
    0, 0 },
  { "test", 0, CLI_WORD, &plan.test, PLAN_TEST_WORDS, "what to measure", 0, 0 },
  { "bytes", 0, CLI_STRING, &plan.sizes_text, "LIST",
    "message sizes, e.g. 8,1K,512K [512K; latency 8]", 0, 0 },
  { "connections", 0, CLI_NUMBER, &plan.connections, "N", "connections in each direction", 1,
    PLAN_CONNECTIONS_MAX },
  { "time", 0, CLI_DURATION, &plan.time_ns, "TIME", "duration of the measurement of each size", 0,
    0 },
  { "warmup", 0, CLI_DURATION, &plan.warmup_ns, "TIME", "warm-up before it", 0, 0 },
  { "count", 0, CLI_INT, &plan.count, "N",
    "measure this many messages per connection instead of a time, and verify their contents", 0,
    INT64_C(1) << 40 },
  { "check", 0, CLI_FLAG, &plan.is_checked, NULL, "verify the contents of messages", 0, 0 },
  { "devices", 0, CLI_STRING, &plan.devices_text, "LIST",
    "devices of the plugin, which connections use in turn, e.g. 0,1 [0]", 0, 0 },
  { "data", 0, CLI_STRING, &plan.data_path, "FILE",
    "what messages contain, of the side that sends [bytes that cannot be compressed]", 0, 0 },
  { "idle", 0, CLI_DURATION, &plan.idle_ns, "TIME",
    "afterwards keep the connections idle for this time and report the CPU time used", 0, 0 },
  { "timeout", 0, CLI_DURATION, &plan.timeout_ns, "TIME", "fail after this time without progress",
    0, 0 },
  { 0 },
};

/* ---- server ---- */

static int run_server(const char *where) {
  struct rendezvous_address place = { .port = PORT };
  static struct peer_listener listener; /* too large for the stack */
  int fd, status = where ? rendezvous_parse(where, PORT, &place) : CLI_OK;
  status = status ? status : rendezvous_open(&listener, PURPOSE, &place, "stratus perf HOST");
  if (status != CLI_OK) {
    return status;
  }
  status = rendezvous_accept(&listener, UINT64_MAX, &fd, NULL);
  peer_listener_close(&listener);
  return status ? status : session_serve(fd, "the client", plan.plugin, plan.data_path);
}

/* ---- client ---- */

static int run_client(const char *host, bool is_json) {
  struct rendezvous_address place;
  json_t *report = NULL;
  plan.has_data = plan.data_path != NULL;
  int fd, status = plan_make(&plan);
  status = status ? status : rendezvous_parse(host, PORT, &place);
  status = status ? status : session_open(&plan);
  status = status ? status : rendezvous_call(PURPOSE, &place, "stratus perf --listen", NULL, &fd);
  status = status ? status : session_run(fd, "the server", &report);
  if (status == CLI_OK && is_json) {
    status = document_print(json_incref(report), JSON_INDENT(2));
  } else if (status == CLI_OK) {
    report_print(&plan, report);
  }
  status = status ? status : report_judge(report);
  json_decref(report);
  return status;
}

static int run(int argument_count, char **arguments, bool is_json) {
  const char *where = argument_count ? arguments[0] : NULL;
  if (is_listening) {
    return cli_given("test|bytes|connections|time|warmup|count|check|devices|idle|timeout")
               ? cli_fail_usage("perf: the client chooses what to measure; --listen takes only "
                                "--plugin and --data")
               : run_server(where);
  }
  if (cli_given("time|warmup") && plan.count) {
    return cli_fail_usage("perf: give either --time and --warmup or --count");
  }
  if (!where) {
    return cli_fail_usage("perf: give either the HOST of a server or --listen");
  }
  return run_client(where, is_json);
}

const struct cli_command command_perf = {
  .name = "perf",
  .summary = "benchmark the transport between two hosts, driven as NCCL drives it",
  .arguments = "HOST[:PORT] | --listen [ADDRESS[:PORT]]",
  .max_arguments = 1,
  .example = "stratus perf --listen localhost & sleep 1; stratus perf localhost --bytes 64K,512K "
             "--time 1s",
  .has_json = true,
  .options = option_rows,
  .run = run,
};
