/* SPDX-License-Identifier: Apache-2.0 */
/* transport: the connections of one host to hosts like itself, through NCCL's eyes: messages are
 * posted, sent, received in order.
 *
 * The host is its own neighbour: what it sends leaves through its NICs, and what comes back to it
 * (acknowledgements, credit) through them as well, as in a ring of equal hosts. So one host is
 * simulated where a pair would take two.
 *
 *   transport_stratus   the real link and policy (net_plugin/link, net_plugin/policy), which share
 *                       what an engine's links share; here are the lanes' owner and their sockets
 *   transport_socket    NCCL's Socket transport: each message is cut in equal parts for a fixed
 *                       number of sockets (src/transport/net_socket.cc at v2.29.7-1)
 *
 * Owns: a struct transport, until transport_free.  Threads: one.  Blocks: never.
 * Fails: without memory, or when a link fails, the program ends with a message. */
#ifndef TESTS_SCALE_TRANSPORT_H
#define TESTS_SCALE_TRANSPORT_H

#include <stddef.h>

#include "tests/scale/network.h"

#define TRANSPORT_CONNECTIONS_MAX 4u /* of a host: two for each channel of a tree */
#define TRANSPORT_THREADS 4u /* that move a host's bytes, which share its connections' ends */
#define TRANSPORT_MESSAGE_MAX (4u << 20)

/* CPU time of an end for a frame (stratus) or a part of a message (Socket), and for a byte of it:
 * README.md has the evidence. */
#define TRANSPORT_FRAME_NS 1000u
#define TRANSPORT_BYTE_PS 140u

struct transport_config {
  struct network_config network;
  unsigned connections; /* of a host, to the next one */
  uint64_t seed;        /* which path a flow draws */
  unsigned sockets;     /* 0: stratus, else Socket with so many for a connection */
};

/* Completions, in order for each connection. */
struct transport_user {
  void (*sent)(void *user, unsigned connection);
  void (*received)(void *user, unsigned connection);
  void *user;
};

struct transport {
  const struct transport_ops *ops;
  struct transport_config config;
  struct transport_user user;
  struct events *events;
  struct network network;
  uint64_t random;
  uint64_t free_ns[TRANSPORT_THREADS]; /* when a thread is done with what it has begun */
};

struct transport_ops {
  void (*send)(struct transport *transport, unsigned connection, uint64_t bytes);
  void (*receive)(struct transport *transport, unsigned connection, uint64_t bytes);
  void (*free)(struct transport *transport);
};

struct transport *transport_new(const struct transport_config *config, struct events *events,
                                const struct transport_user *user);

/* ---- for the transports ---- */

struct transport *transport_stratus_new(const struct transport_config *config,
                                        struct events *events, const struct transport_user *user);
struct transport *transport_socket_new(const struct transport_config *config, struct events *events,
                                       const struct transport_user *user);
/* What both have. */
void transport_begin(struct transport *transport, const struct transport_ops *ops,
                     const struct transport_config *config, struct events *events,
                     const struct transport_user *user);
/* The thread of an end of a connection: its place in free_ns. */
unsigned transport_thread(unsigned connection, bool is_receiver);
/* When the thread is done with so many bytes more. */
uint64_t transport_work(struct transport *transport, unsigned thread, uint64_t bytes);
/* A new flow's path. */
unsigned transport_draw_path(struct transport *transport);
void *transport_memory(size_t bytes);
/* From 0, below 1. */
double transport_uniform(uint64_t *random);

#endif
