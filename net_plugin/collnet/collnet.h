/* SPDX-License-Identifier: Apache-2.0 */
/* collnet: AllReduce across hosts on the hosts: what NCCL's CollNet interface asks for, in no
 * particular version of it.
 *
 * A group has one member per host and NIC. Each member owns a part of every message: the others
 * send it theirs (phase 1), it reduces them in the order of the members, rounds once, and sends the
 * result to all (phase 2). So every host has the same bits, in every run, whatever arrives first.
 * Both phases go over connections like any other: lanes, failover, checksums, encryption and
 * statistics are the same.
 *
 *   member 0         member 1         member 2
 *   [0|1|2] --1--->  [0|1|2] --2--->  [0|1|2]     phase 1: part p of everyone to member p
 *   [0'     <--0--    1'     <--1--       2']     phase 2: the reduced part p' to everyone
 *
 * Off unless STRATUS_COLLNET says otherwise: `full` sends elements as they are, `bf16` and `fp16`
 * send f32 sums in 16 bits (two roundings, whatever the number of hosts).
 *
 * Owns: groups, requests and their staging memory.  Threads: listen, connect, register, close:
 * NCCL's service thread; allreduce and test: the progress thread of the group; deregister: any.
 * Blocks: collnet_connect, until all members agree, three times 8 s at most; deregister, allreduce
 * and test for one another, as long as a piece is reduced.
 *
 * Fails: negative errno, after LOG_WARN. */
#ifndef NET_PLUGIN_COLLNET_COLLNET_H
#define NET_PLUGIN_COLLNET_COLLNET_H

#include <stdbool.h>
#include <stddef.h>

#include "net_plugin/collnet/limits.h"
#include "net_plugin/reduce/reduce.h"

struct collnet_listener;
struct collnet_group;
struct collnet_memory;
struct collnet_request;

/* What all members must have in common. */
enum collnet_mode { COLLNET_OFF, COLLNET_FULL, COLLNET_BF16, COLLNET_FP16 };

enum collnet_mode collnet_mode(void); /* STRATUS_COLLNET, else the profile's */
const char *collnet_mode_name(enum collnet_mode mode);

/* Cannot fail: NCCL would leave the other hosts waiting in an exchange (ncclTransportCollNetSetup,
 * src/transport.cc at v2.29.7). A listener that could not be made shows in its handle, and
 * collnet_connect fails on all members. */
void collnet_listen(int device, void *handle, struct collnet_listener **listener);
/* handles: of all members, by number; `member` is this one. Every member succeeds, or none does: a
 * member that lacks something, or has other settings, is named in the log of each. */
int collnet_connect(void *const *handles, int members, int member,
                    struct collnet_listener *listener, struct collnet_group **group);
void collnet_close_listener(struct collnet_listener *listener);
/* Nothing of the user's is read or written after this returns. */
void collnet_close(struct collnet_group *group);

bool collnet_supports(enum reduce_type type, enum reduce_op op);

/* type: NCCL_PTR_HOST, which cannot fail (one host that fails after collnet_connect would leave the
 * others waiting), or NCCL_PTR_CUDA. */
int collnet_register(struct collnet_group *group, void *data, size_t bytes, int type,
                     struct collnet_memory **memory);
int collnet_register_dma_buf(struct collnet_group *group, void *data, size_t bytes, size_t offset,
                             int fd, struct collnet_memory **memory);
/* Ends the group if a call uses this memory. */
void collnet_deregister(struct collnet_group *group, struct collnet_memory *memory);

/* What NCCL asks for; send and recv may be the same memory. */
struct collnet_call {
  const void *send;
  void *recv;
  size_t count; /* elements */
  enum reduce_type type;
  enum reduce_op op;
  struct collnet_memory *send_memory, *recv_memory;
};

/* *request NULL: no room now, ask again. */
int collnet_allreduce(struct collnet_group *group, const struct collnet_call *call,
                      struct collnet_request **request);
/* *is_done: the request is gone, *bytes is its size. */
int collnet_test(struct collnet_request *request, bool *is_done, size_t *bytes);

#endif
