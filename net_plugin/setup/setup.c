/* SPDX-License-Identifier: Apache-2.0 */
/* See setup.h. */
#include "net_plugin/setup/setup.h"

#include "common/clock.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/setup/connector.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/listener.h"
#include "net_plugin/setup/port.h"

static void leave_engine(struct engine *engine, void *unused) {
  (void)unused;
  connector_drop_all(engine);
  listener_drop_all(engine);
  connection_detach_all(engine);
}

static void stop_engine(struct engine *engine) {
  struct connection *connection;
  while ((connection = connection_next(engine, NULL))) {
    connection_destroy(connection);
  }
  port_close_all(engine);
}

void setup_stop(void) {
  engine_visit_all(leave_engine, NULL);
  engine_stop_all(SETUP_CLOSE_NS, stop_engine);
  endpoint_stop_all();
}
