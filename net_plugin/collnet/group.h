/* SPDX-License-Identifier: Apache-2.0 */
/* group: what the parts of collnet share. */
#ifndef NET_PLUGIN_COLLNET_GROUP_H
#define NET_PLUGIN_COLLNET_GROUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "net_plugin/collnet/collnet.h"
#include "net_plugin/collnet/hello.h"
#include "net_plugin/plugin/memory.h"

struct connection;
struct nic_totals;
struct request;

enum collnet_way { COLLNET_SEND, COLLNET_RECEIVE, COLLNET_WAYS };

struct collnet_path {
  struct connection *connection;
  uint64_t posted; /* calls whose message was posted here, or is empty */
};

/* NCCL does not say what memory is for until a call uses it. */
struct collnet_memory {
  const struct memory *memory;           /* no peer can write there */
  _Atomic(const struct memory *) target; /* the same memory, where peers may; NULL: none yet */
  void *data;                            /* of what can become a target; NULL: it cannot */
  size_t bytes;
  bool has_worker; /* guarded by the group's lock: makes the target, or has made it */
  pthread_t worker;
};

/* One message of a request. */
struct collnet_message {
  struct request *request; /* NULL: not posted, or complete */
  bool is_done;
};

/* What NCCL asked for. */
struct collnet_request {
  struct collnet_group *group;
  bool is_in_use;
  struct collnet_call call;
  size_t started, finished; /* elements, of its pieces */
};

/* Memory of one piece, kept for the next one. */
struct collnet_staging {
  uint8_t *data;
  size_t bytes;
};

/* A request runs as pieces of COLLNET_BYTES_MAX at most. */
struct collnet_piece {
  struct collnet_group *group;
  struct collnet_request *request;
  uint64_t number; /* of the piece, from 0; the same on all members */
  bool is_in_use, is_reduced;
  bool is_compressed; /* elements travel as wire_type */
  struct collnet_call call;
  enum reduce_wire wire_type;
  size_t wire_bytes;                /* of one element as it travels */
  unsigned contributions_left;      /* until the reduction may begin */
  unsigned messages_left;           /* of both phases and ways */
  struct collnet_message *messages; /* by phase, way and member */
  struct collnet_staging staging;
};

struct collnet_group {
  pthread_mutex_t lock; /* calls and requests, and posts on the connections: memory is taken back
                         * by another thread than the one that makes progress */
  enum collnet_mode mode;
  const struct reduce_variant *variant;
  unsigned members, member;   /* how many, and which one this is */
  int error;                  /* negative errno: what ended it */
  struct collnet_path *paths; /* by phase, way and member */
  uint64_t calls;             /* so far */
  uint64_t starting;          /* all pieces of the calls before this one are started */
  struct collnet_request requests[COLLNET_REQUESTS];
  uint64_t pieces_started; /* so far */
  uint64_t oldest;         /* no piece before this one is in use */
  size_t bytes_in_flight;  /* of pieces in use */
  struct collnet_piece pieces[COLLNET_REQUESTS];
  struct collnet_staging spare_staging[COLLNET_REQUESTS];
  unsigned spare_stagings;
  struct reduce_counters counters;    /* of what was rounded */
  struct reduce_counters reported;    /* of these, in totals */
  struct memory unregistered;         /* of what memory_register had no memory for */
  struct collnet_memory spare_memory; /* the handle of that */
  struct nic_totals *totals;
};

static inline size_t collnet_index(const struct collnet_group *group, enum collnet_phase phase,
                                   enum collnet_way way, unsigned member) {
  return ((size_t)phase * COLLNET_WAYS + way) * group->members + member;
}

static inline size_t collnet_path_count(const struct collnet_group *group) {
  return (size_t)COLLNET_PHASES * COLLNET_WAYS * group->members;
}

static inline struct collnet_path *collnet_path(struct collnet_group *group,
                                                enum collnet_phase phase, enum collnet_way way,
                                                unsigned member) {
  return &group->paths[collnet_index(group, phase, way, member)];
}

/* group.c: an empty one, and its end with all connections. NULL: out of memory. */
struct collnet_group *group_create(enum collnet_mode mode, unsigned members, unsigned member,
                                   struct nic_totals *totals);
/* A call is complete: counts it. */
void group_count(struct collnet_group *group, size_t bytes);
void group_destroy(struct collnet_group *group);

/* collnet_memory.c: a call receives into it, with the group's lock. From some time later on peers
 * may write there. NULL: nothing happens. */
void group_receives_into(struct collnet_memory *memory);
/* For a message; NULL: none. */
const struct memory *group_memory(const struct collnet_memory *memory, bool is_send);

#endif
