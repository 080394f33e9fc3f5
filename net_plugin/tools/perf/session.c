/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a session. A message that goes both ways is a barrier: neither side continues before
 * it has received the other's.
 *
 *   client                      server
 *   "plan"                  ->
 *   "ready": its transport <->  "ready"
 *   (connections are made: driver.c)
 *   for each size:
 *     "start"              <->  "start"
 *     (round.c)
 *                          <-   "side": the results of the server
 *   with --idle: "rest"    <->  "rest"
 *     "rested": CPU time   <->  "rested"
 *   "end"                  <->  "end" */
#include "net_plugin/tools/perf/session.h"

#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/perf/driver.h"
#include "net_plugin/tools/perf/report.h"

/* One per process; too large for the stack. */
static struct driver driver;
static struct window window;

int session_open(const struct plan *plan) {
  driver.plan = *plan;
  driver.is_client = true;
  return driver_open(&driver);
}

static json_t *describe(void) {
  return json_pack("{s:s, s:s}", "transport", driver.table->name, "path", driver.path);
}

static int get_ready(json_t *mine, json_t **theirs) {
  int status = control_channel_exchange(&driver.channel, "ready", driver.plan.timeout_ns,
                                        json_incref(mine), theirs);
  if (status != CLI_OK) {
    return status;
  }
  const char *here = json_string_value(json_object_get(mine, "transport"));
  const char *there = json_string_value(json_object_get(*theirs, "transport"));
  return there && strcmp(here, there) == 0
             ? CLI_OK
             : cli_fail(
                   "%s has plugin %s, this side %s: start the server with --listen --plugin NAME "
                   "for another one",
                   driver.channel.peer, there ? there : "none", here);
}

/* The client adds the results of both sides. */
static int run_round(uint64_t bytes, json_t *rounds) {
  struct control_channel *channel = &driver.channel;
  uint64_t wrong;
  json_t *theirs;
  int status = control_channel_barrier(channel, "start", driver.plan.timeout_ns);
  status = status ? status : driver_run(&driver, bytes, &window, &wrong);
  if (status != CLI_OK) {
    return status;
  }
  json_t *mine = window_to_json(&window);
  if (!driver.is_client) {
    return control_channel_send(channel,
                                json_pack("{s:o, s:I}", "side", mine, "wrong", (json_int_t)wrong));
  }
  status = mine ? control_channel_receive(channel, "side", driver.plan.timeout_ns, &theirs)
                : cli_fail("out of memory");
  if (status != CLI_OK) {
    json_decref(mine);
    return status;
  }
  wrong += (uint64_t)json_integer_value(json_object_get(theirs, "wrong"));
  json_array_append_new(
      rounds, report_round(bytes, wrong, mine, json_incref(json_object_get(theirs, "side"))));
  json_decref(theirs);
  return CLI_OK;
}

/* Both sides at the same time: the CPU time of open connections without requests. */
static int rest(json_t **idle) {
  struct control_channel *channel = &driver.channel;
  const struct plan *plan = &driver.plan;
  json_t *theirs;
  if (!plan->idle_ns) {
    return CLI_OK;
  }
  int status = control_channel_barrier(channel, "rest", plan->timeout_ns);
  json_t *mine = status == CLI_OK ? window_measure_idle(plan->idle_ns) : NULL;
  status = status ? status
                  : control_channel_exchange(channel, "rested", plan->timeout_ns, json_incref(mine),
                                             &theirs);
  if (status != CLI_OK) {
    json_decref(mine);
    return status;
  }
  *idle = json_pack("{s:o, s:o}", "client", mine, "server", theirs);
  return *idle ? CLI_OK : cli_fail("out of memory");
}

/* From the plan on; `report` is the client's, else NULL. */
static int run_plan(json_t **report) {
  struct control_channel *channel = &driver.channel;
  const struct plan *plan = &driver.plan;
  json_t *mine = describe(), *theirs = NULL, *rounds = json_array(), *idle = NULL;
  int status = mine ? get_ready(mine, &theirs) : cli_fail("the transport cannot be described");
  status = status ? status : driver_connect(&driver);
  for (int i = 0; i < plan->size_count && status == CLI_OK; i++) {
    status = run_round(plan->sizes[i], rounds);
  }
  status = status ? status : rest(&idle);
  status = status ? status : control_channel_barrier(channel, "end", plan->timeout_ns);
  if (status == CLI_OK) {
    driver_close(&driver);
  }
  if (status != CLI_OK || !report) {
    json_decref(mine);
    json_decref(theirs);
    json_decref(rounds);
    json_decref(idle);
    return status;
  }
  double connect_s = (double)driver.connect_ns * 1e-9;
  *report = report_all(plan, mine, theirs, connect_s, rounds, idle);
  return *report ? CLI_OK : cli_fail("out of memory");
}

static int conclude(int status) {
  if (status != CLI_OK) {
    control_channel_abort(&driver.channel);
  }
  control_channel_close(&driver.channel);
  return status;
}

int session_run(int fd, const char *peer, json_t **report) {
  int status = control_channel_open(&driver.channel, fd, peer);
  if (status == CLI_OK) {
    status = control_channel_send(&driver.channel,
                                  json_pack("{s:o}", "plan", plan_to_json(&driver.plan)));
  }
  return conclude(status == CLI_OK ? run_plan(report) : status);
}

static int receive_plan(const char *plugin, const char *data) {
  struct plan *plan = &driver.plan;
  json_t *message;
  int status = control_channel_receive(&driver.channel, "plan", PERF_GREETING_TIMEOUT_NS, &message);
  if (status != CLI_OK) {
    return status;
  }
  status = plan_from_json(plan, json_object_get(message, "plan"));
  json_decref(message);
  plan->plugin = plugin;
  plan->data_path = data;
  return status;
}

int session_serve(int fd, const char *peer, const char *plugin, const char *data) {
  int status = control_channel_open(&driver.channel, fd, peer);
  status = status ? status : receive_plan(plugin, data);
  status = status ? status : driver_open(&driver);
  return conclude(status == CLI_OK ? run_plan(NULL) : status);
}
