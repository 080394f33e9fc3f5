/* SPDX-License-Identifier: Apache-2.0 */
/* talk: one end of a handshake in progress, dialled or accepted: its socket, the message that is
 * arriving, and the endpoint (endpoint.h) that the handshake waits for.
 *
 *   CONNECTING --talk_listen--> LISTENING --talk_join--> JOINING
 *
 * An accepted one begins with LISTENING. Whose it is hears of everything by talk_ops, and may end
 * the talk there.
 *
 * Owns: socket and endpoint, until whoever ends it hands them on.  Threads: holder of the engine
 * lock.  Blocks: never.  Fails: negative errno. */
#ifndef NET_PLUGIN_SETUP_TALK_H
#define NET_PLUGIN_SETUP_TALK_H

#include "net_plugin/engine/engine.h"
#include "net_plugin/lane/endpoint.h"
#include "net_plugin/setup/handshake.h"

enum talk_state { TALK_CONNECTING, TALK_LISTENING, TALK_JOINING };

struct talk;
struct talk_ops {
  /* CONNECTING: the socket is writable. */
  void (*connected)(struct talk *talk);
  /* LISTENING. 0: a whole message of this kind is in `message`, which handshake_check has passed.
   * Else none will be: -ETIMEDOUT, the deadline has passed; an error of handshake.h, of whose
   * message there is the prefix; else the path is broken, -ECONNRESET where the peer has closed it.
   * JOINING: it has left, which is all that it can say meanwhile. */
  void (*heard)(struct talk *talk, int error, enum handshake_kind kind);
  /* The time of talk_look_later, or one that was set while CONNECTING, is over, and the peer's
   * kernel has not acknowledged what was sent. */
  void (*unheard)(struct talk *talk, uint64_t now_ns);
  /* JOINING: endpoint_result, or -ETIMEDOUT, it takes too long. */
  void (*joined)(struct talk *talk, int error);
};

struct talk {
  struct engine_source source;          /* first: what engines call has this address */
  struct engine_source endpoint_source; /* while JOINING */
  struct engine_timer timer;
  struct engine *engine;
  const struct talk_ops *ops;
  enum talk_state state;
  uint64_t deadline_ns;            /* of what the peer says */
  uint64_t patience_ns;            /* the least wait of talk_look_later */
  int fd;                          /* -1: none */
  struct endpoint *endpoint;       /* NULL: none */
  size_t got;                      /* of the message */
  union handshake_message message; /* the last one */
  struct transcript transcript;
};

/* It has no socket yet. The rest is zero. */
void talk_init(struct talk *talk, struct engine *engine, const struct talk_ops *ops,
               uint64_t deadline_ns);
/* Begins with its socket, in this state. */
int talk_watch(struct talk *talk, enum talk_state state);
/* The socket is connected, and messages are to come. */
void talk_listen(struct talk *talk);
/* At this time, or at the deadline if that is earlier. */
void talk_set_timer(struct talk *talk, uint64_t due_ns);
/* Something was sent: has it arrived, when it should have? */
void talk_look_later(struct talk *talk);
/* Waits for the endpoint, which it has now, but no longer than this. 0, or it cannot. */
int talk_join(struct talk *talk, uint64_t wait_ns);
void talk_drop_endpoint(struct talk *talk);
/* Nothing is called any more. Before the socket is closed: then its number may belong to another
 * thread's descriptor, which is not ours to unwatch. */
void talk_stop(struct talk *talk);
/* Stops, closes the socket and frees the endpoint. */
void talk_close(struct talk *talk);

#endif
