/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a session. A message that goes both ways is a barrier: neither side continues before
 * it has received the other's.
 *
 *   client                      server
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

#include <string.h>

#include "common/cli.h"
#include "net_plugin/tools/perf/driver.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/flows.h"
#include "net_plugin/tools/perf/window.h"
#include "net_plugin/tools/perf/report.h"

/* One per process; too large for the stack. */
static struct session {
  const struct plan *plan;
  struct control_channel *channel;
  bool is_client;
  struct driver driver;
  struct window window;
  struct flows before, after;
} session;

int session_open(const struct plan *plan, bool is_client) {
  session.plan = plan;
  session.is_client = is_client;
  return driver_open(&session.driver, plan, is_client);
}

/* ---- description of both ends ---- */

static json_t *describe_devices(const struct driver *driver) {
  json_t *list = json_array();
  for (int i = 0; i < driver->device_count; i++) {
    struct transport_device device = { 0 };
    if (transport_describe(&driver->transport, driver->devices[i], &device) != CLI_OK) {
      json_decref(list);
      return NULL;
    }
    json_array_append_new(
        list, json_pack("{s:s, s:i}", "name", device.name, "speed_mbps", device.speed_mbps));
  }
  return list;
}

static json_t *describe(void) {
  const struct transport *transport = &session.driver.transport;
  return json_pack("{s:s, s:i, s:s, s:o}", "transport", transport->name, "interface",
                   transport->version, "path", transport->path, "devices",
                   describe_devices(&session.driver));
}

static int get_ready(json_t *mine, json_t **theirs) {
  int status = control_channel_exchange(session.channel, "ready", session.plan->timeout_ns,
                                        json_incref(mine), theirs);
  if (status != CLI_OK) {
    return status;
  }
  const char *here = json_string_value(json_object_get(mine, "transport"));
  const char *there = json_string_value(json_object_get(*theirs, "transport"));
  return there && strcmp(here, there) == 0
             ? CLI_OK
             : failure(
                   "%s has plugin %s, this side %s: start the server with --listen --plugin NAME "
                   "for another one",
                   session.channel->peer, there ? there : "none", here);
}

/* ---- rounds ---- */

/* The client adds the results of both sides. */
static int run_round(uint64_t bytes, json_t *rounds) {
  struct control_channel *channel = session.channel;
  bool has_flows = session.plan->has_flows;
  uint64_t wrong = 0;
  json_t *theirs;
  int status = control_channel_barrier(channel, "start", session.plan->timeout_ns);
  if (has_flows && status == CLI_OK) {
    flows_take(&session.before, channel->fd);
  }
  status = status == CLI_OK ? driver_run(&session.driver, bytes, &session.window, &wrong) : status;
  if (status != CLI_OK) {
    return status;
  }
  if (has_flows) {
    flows_take(&session.after, channel->fd);
  }
  json_t *mine = window_to_json(&session.window,
                                has_flows ? flows_to_json(&session.before, &session.after) : NULL);
  if (!session.is_client) {
    return control_channel_send(channel,
                                json_pack("{s:o, s:I}", "side", mine, "wrong", (json_int_t)wrong));
  }
  status = mine ? control_channel_receive(channel, "side", session.plan->timeout_ns, &theirs)
                : failure("out of memory");
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
  struct control_channel *channel = session.channel;
  const struct plan *plan = session.plan;
  json_t *theirs;
  if (!plan->idle_ns) {
    return CLI_OK;
  }
  int status = control_channel_barrier(channel, "rest", plan->timeout_ns);
  json_t *mine = status == CLI_OK ? window_measure_idle(plan->idle_ns) : NULL;
  status = status == CLI_OK ? control_channel_exchange(channel, "rested", plan->timeout_ns,
                                                       json_incref(mine), &theirs)
                            : status;
  if (status != CLI_OK) {
    json_decref(mine);
    return status;
  }
  *idle = json_pack("{s:o, s:o}", "client", mine, "server", theirs);
  return *idle ? CLI_OK : failure("out of memory");
}

int session_run(struct control_channel *channel, json_t **report) {
  session.channel = channel;
  json_t *mine = describe(), *theirs = NULL, *rounds = json_array(), *idle = NULL;
  int status = mine ? get_ready(mine, &theirs) : failure("the transport cannot be described");
  status = status == CLI_OK ? driver_connect(&session.driver, channel) : status;
  for (int i = 0; i < session.plan->size_count && status == CLI_OK; i++) {
    status = run_round(session.plan->sizes[i], rounds);
  }
  status = status == CLI_OK ? rest(&idle) : status;
  status =
      status == CLI_OK ? control_channel_barrier(channel, "end", session.plan->timeout_ns) : status;
  if (status != CLI_OK) {
    control_channel_abort(channel);
    json_decref(mine);
    json_decref(theirs);
    json_decref(rounds);
    json_decref(idle);
    return status;
  }
  driver_close(&session.driver);
  double connect_s = (double)session.driver.connect_ns * 1e-9;
  json_t *all = report_all(session.plan, mine, theirs, connect_s, rounds, idle);
  *report = all;
  return all ? CLI_OK : failure("out of memory");
}
