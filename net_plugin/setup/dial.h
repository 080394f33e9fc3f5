/* SPDX-License-Identifier: Apache-2.0 */
/* dial: opens one lane towards a listener: connects, sends the hello, proves to know the
 * connection's key, and checks that the other side knows it, too.
 *
 *   connecting --connected--> greeting --challenge--> proving --genuine reply--> done(0)
 *   proving --genuine reply, endpoints to be connected--> joining --they are--> done(0)
 *   any --error, refusal, deadline--> done(negative errno)
 *
 * While joining a worker asks drivers (endpoint.h), for half of the time there is left at most.
 *
 * Owns: its socket until done, then the callback has it.  Threads: all functions and the callback:
 * holder of the engine lock.  Blocks: never.  Fails: through the callback:
 *   -EPROTONOSUPPORT  the peer runs another wire version, which is in the reply
 *   -EPROTO           whatever listens there is not stratus
 *   -EKEYREJECTED     it does not know the connection's key
 *   -ENOLINK          the peer refused: reply->status has the reason
 *   -ENODEV           the endpoints cannot be connected, or not in time
 *   -EISCONN          somebody listens there; of an inquiry only
 *   -ETIMEDOUT and errors of connect */
#ifndef NET_PLUGIN_SETUP_DIAL_H
#define NET_PLUGIN_SETUP_DIAL_H

#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/connection/connection.h"
#include "net_plugin/engine/engine.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"

struct dial;

/* The dial is over when this is called, and freed behind it. reply is valid for 0, -EPROTONOSUPPORT
 * (its prefix only) and -ENOLINK. After an error the path has no fd. */
typedef void dial_done_fn(void *argument, int error, const struct lane_path *path,
                          const struct reply *reply);

/* hello, keys: NULL for an inquiry, which says nothing and leaves at once. The keys stay where they
 * are until the dial is over.
 * With hello->params.remote_keys an endpoint is offered to the peer. The hello's nonce is filled in
 * here. NULL with *error set: could not even start; done
 * is not called. */
struct dial *dial_start(struct engine *engine, const struct nic *nic,
                        const struct sockaddr_storage *address, const struct hello *hello,
                        const struct auth_keys *keys, uint64_t deadline_ns, dial_done_fn *done,
                        void *argument, int *error);
/* done is not called. */
void dial_cancel(struct dial *dial);

#endif
