/* SPDX-License-Identifier: Apache-2.0 */
/* See transfer.h. */
#include "net_plugin/plugin/transfer.h"

#include "net_plugin/connection/connection.h"
#include "net_plugin/plugin/memory.h"
#include "net_plugin/observe/profiler.h"

int transfer_post(struct connection *connection, void *data, size_t bytes,
                  const struct memory *memory, void *phandle, struct request **result) {
  *result = NULL;
  int error = connection_error(connection);
  if (error) {
    return error;
  }
  struct request *request = connection_post(connection, memory_address(memory, data), bytes, memory,
                                            memory ? memory->devices : NULL);
  if (request) {
    profiler_request_started(connection_owner(connection), phandle,
                             connection_is_sender(connection), bytes, &request->event);
  }
  *result = request;
  return 0;
}

int transfer_test(struct request *request, bool *is_done, size_t *bytes) {
  struct connection *connection = request->connection;
  *is_done = connection_is_done(request);
  if (!*is_done) {
    connection_progress(connection);
    *is_done = connection_is_done(request);
  }
  if (*is_done) {
    *bytes = request->bytes;
    profiler_request_stopped(connection_owner(connection), &request->event);
    connection_release(request);
    return 0;
  }
  return connection_error(connection);
}

void transfer_deregister(struct connection *connection, const struct memory *memory) {
  if (connection && memory) {
    connection_withdraw(connection, memory);
  }
  memory_deregister(memory);
}

void transfer_close(struct connection *connection) {
  connection_detach(connection);
}
