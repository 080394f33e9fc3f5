/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: isend, irecv and test on a connection.
 *
 * Owns: nothing; requests belong to their connection and end when transfer_test reports them done.
 * Threads: NCCL's progress thread of the connection, one at a time.  Blocks: isend and
 * irecv never; test sleeps up to 200 us where nothing has moved for half a second; deregister and
 * close wait for the engine lock and for devices (connection.h).
 * Fails: negative errno for a connection that is truly dead (reported once with LOG_WARN). */
#ifndef NET_PLUGIN_PLUGIN_TRANSFER_H
#define NET_PLUGIN_PLUGIN_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>

#include "net_plugin/plugin/memory.h"

struct connection;
struct request;

/* An isend or irecv, as the connection sends or receives. *request is NULL if there is no room now:
 * NCCL asks again. The profiler is the connection's owner (plugin.c). */
int transfer_post(struct connection *connection, void *data, size_t bytes,
                  const struct memory *memory, void *phandle, struct request **request);
/* *is_done: the request is gone, *bytes is what was sent or received. */
int transfer_test(struct request *request, bool *is_done, size_t *bytes);
/* Ends the registration, which was made for this connection. After it returns nothing reads or
 * writes the memory; requests that are not complete then never will be, and end the connection (see
 * connection_withdraw). Either may be NULL. */
void transfer_deregister(struct connection *connection, const struct memory *memory);
/* Ends the connection: no user memory is touched after this returns. Never blocks on the network:
 * what is left to deliver is delivered by the engine in the background. */
void transfer_close(struct connection *connection);

#endif
