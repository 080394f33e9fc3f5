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
 *                          <-   "rested": CPU time of the server
 *   "end"                  <->  "end" */
#include "net_plugin/tools/perf/session.h"

#include <stdlib.h>
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
  json_t *message;
  int status = control_channel_send(session.channel, json_pack("{s:O}", "ready", mine));
  status = status == CLI_OK ? control_channel_receive(session.channel, "ready",
                                                      session.plan->timeout_ns, &message)
                            : status;
  if (status != CLI_OK) {
    return status;
  }
  *theirs = json_incref(json_object_get(message, "ready"));
  json_decref(message);
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

static int run_round(uint64_t bytes, json_t **side, uint64_t *wrong) {
  struct control_channel *channel = session.channel;
  bool has_flows = session.plan->has_flows;
  int status = control_channel_barrier(channel, "start", session.plan->timeout_ns);
  if (has_flows && status == CLI_OK) {
    flows_take(&session.before, channel->fd);
  }
  if (status == CLI_OK) {
    status = driver_run(&session.driver, bytes, &session.window, wrong);
  }
  if (has_flows && status == CLI_OK) {
    flows_take(&session.after, channel->fd);
  }
  *side = status == CLI_OK
              ? window_to_json(&session.window,
                               has_flows ? flows_to_json(&session.before, &session.after) : NULL)
              : NULL;
  return status == CLI_OK && !*side ? failure("out of memory") : status;
}

/* Adds the results of both sides of a round. */
static int session_add_round(uint64_t bytes, json_t *side, uint64_t wrong, json_t *rounds) {
  json_t *message;
  int status = control_channel_receive(session.channel, "side", session.plan->timeout_ns, &message);
  if (status != CLI_OK) {
    json_decref(side);
    return status;
  }
  wrong += (uint64_t)json_integer_value(json_object_get(message, "wrong"));
  json_t *theirs = json_incref(json_object_get(message, "side"));
  json_decref(message);
  json_array_append_new(rounds, report_round(bytes, wrong, side, theirs));
  return CLI_OK;
}

static int run_rounds(json_t *rounds) {
  int status = CLI_OK;
  for (int i = 0; i < session.plan->size_count && status == CLI_OK; i++) {
    uint64_t bytes = session.plan->sizes[i], wrong = 0;
    json_t *side;
    status = run_round(bytes, &side, &wrong);
    if (status == CLI_OK) {
      status = session.is_client
                   ? session_add_round(bytes, side, wrong, rounds)
                   : control_channel_send(session.channel, json_pack("{s:o, s:I}", "side", side,
                                                                     "wrong", (json_int_t)wrong));
    }
  }
  return status;
}

/* Both sides at the same time: the CPU time of open connections without requests. The client gets
 * {"client", "server"}. */
static int rest(json_t **idle) {
  struct control_channel *channel = session.channel;
  uint64_t rest_ns = session.plan->idle_ns;
  *idle = NULL;
  if (!rest_ns) {
    return CLI_OK;
  }
  int status = control_channel_barrier(channel, "rest", session.plan->timeout_ns);
  json_t *mine = status == CLI_OK ? window_measure_idle(rest_ns) : NULL, *message;
  if (status != CLI_OK || !session.is_client) {
    return status == CLI_OK ? control_channel_send(channel, json_pack("{s:o}", "rested", mine))
                            : status;
  }
  status = control_channel_receive(channel, "rested", session.plan->timeout_ns, &message);
  if (status != CLI_OK) {
    json_decref(mine);
    return status;
  }
  *idle = json_pack("{s:o, s:O}", "client", mine, "server", json_object_get(message, "rested"));
  json_decref(message);
  return *idle ? CLI_OK : failure("out of memory");
}

int session_run(struct control_channel *channel, json_t **report) {
  session.channel = channel;
  json_t *mine = describe(), *theirs = NULL, *rounds = json_array(), *idle = NULL;
  int status = mine ? get_ready(mine, &theirs) : failure("the transport cannot be described");
  status = status == CLI_OK ? driver_connect(&session.driver, channel) : status;
  status = status == CLI_OK ? run_rounds(rounds) : status;
  status = status == CLI_OK ? rest(&idle) : status;
  status =
      status == CLI_OK ? control_channel_barrier(channel, "end", session.plan->timeout_ns) : status;
  if (status != CLI_OK) {
    control_channel_abort(channel, failure_text());
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
