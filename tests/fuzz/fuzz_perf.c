/* SPDX-License-Identifier: Apache-2.0 */
/* What the other side of `stratus perf` and of `stratus probe` may say: its release,
 * messages with their lengths, a plan, and the numbers of which the report is made. A plan that is
 * accepted is within the limits and the same after another journey; a report tells the terminal
 * nothing. */
#include <sys/socket.h>
#include <unistd.h>

#include "net_plugin/tools/perf/plan.h"
#include "net_plugin/tools/perf/report.h"
#include "net_plugin/tools/control_channel.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/messages.h"

enum { MESSAGES_MAX = 16 };

static void check_plan(const json_t *json) {
  struct plan plan, again;
  if (plan_from_json(&plan, json) != 0) {
    return;
  }
  FUZZ_CHECK(plan.size_count >= 1 && plan.size_count <= PLAN_SIZES_MAX);
  for (int i = 0; i < plan.size_count; i++) {
    FUZZ_CHECK(plan.sizes[i] <= plan.largest && plan.largest <= PLAN_BYTES_MAX);
  }
  FUZZ_CHECK(plan.device_count >= 1 && plan.device_count <= PLAN_DEVICES_MAX);
  FUZZ_CHECK(plan.connections >= 1 && plan.connections <= PLAN_CONNECTIONS_MAX);
  FUZZ_CHECK(plan_test_name(&plan)[0]);
  json_t *said = plan_to_json(&plan);
  FUZZ_CHECK(said != NULL);
  FUZZ_CHECK(plan_from_json(&again, said) == 0);
  json_t *said_again = plan_to_json(&again);
  FUZZ_CHECK(json_equal(said, said_again));
  json_decref(said);
  json_decref(said_again);
}

/* As session.c does with what it heard: both references are taken. */
static void check_report(json_t *ready, json_t *side) {
  static const struct plan plan = { .idle_ns = 1, .connections = 1 };
  json_t *mine = json_pack("{s:f, s:n}", "seconds", 1.0, "half_round_trip_us");
  json_t *round = report_round(1024, 0, mine, json_incref(side));
  json_t *rounds = json_array();
  json_array_append_new(rounds, round);
  json_t *idle = json_pack("{s:O, s:O}", "client", side, "server", side);
  json_t *report =
      report_all(&plan, json_incref(ready), json_incref(ready), 0.5, rounds, json_incref(idle));
  FUZZ_CHECK(report != NULL);
  for (int is_latency = 0; is_latency < 2; is_latency++) {
    struct plan shown = plan;
    char *text;
    size_t bytes;
    shown.test = is_latency ? PLAN_LATENCY : PLAN_BANDWIDTH;
    FILE *before = fuzz_print_here(&text, &bytes);
    report_print(&shown, report);
    fuzz_printed(before);
    fuzz_check_visible(text, bytes);
    free(text);
  }
  report_judge(report);
  json_decref(report);
  json_decref(idle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_swallow_messages();
  struct fuzz_input input = { data, size };
  uint8_t shape = fuzz_u8(&input);
  struct control_channel channel;
  int fds[2];
  FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  fuzz_say_all(fds[1], &input, shape);
  json_t *message = NULL, *ready = json_object(), *side = json_object();
  int status = control_channel_open(&channel, fds[0], "the server");
  /* All of it is there, so a poll finds a message or the end. */
  for (int i = 0; i < MESSAGES_MAX && status == 0; i++) {
    status = control_channel_poll(&channel, &message);
    FUZZ_CHECK(status != 0 || json_is_object(message));
    if (json_object_get(message, "plan")) {
      check_plan(json_object_get(message, "plan"));
    }
    if (json_object_get(message, "ready")) {
      json_decref(ready);
      ready = json_incref(json_object_get(message, "ready"));
    }
    if (json_object_get(message, "side")) {
      json_decref(side);
      side = json_incref(json_object_get(message, "side"));
      check_report(ready, side);
    }
    json_decref(message);
    message = NULL;
  }
  control_channel_close(&channel);
  close(fds[1]);
  json_decref(ready);
  json_decref(side);
  return 0;
}
