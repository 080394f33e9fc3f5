/* SPDX-License-Identifier: Apache-2.0 */
/* AllReduce: both phases of all pieces of all calls in flight, driven by collnet_test.
 *
 * A message is posted to its connection in the order of the pieces, which is the same on all
 * members: pieces of one call follow each other, and NCCL makes the calls of a group in one order
 * on all hosts (sendProxyProgress, src/transport/coll_net.cc at v2.30.7). A piece's second phase
 * may wait while later pieces are in their first, hence a connection per phase. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/plugin/plugin.h"

/* Parts begin at multiples of this many elements, so that no two members write one cache line:
 * 64 bytes of the smallest type. */
#define PART_ELEMENTS 64

/* ---- parts ---- */

struct span {
  size_t begin, count; /* elements */
};

static struct span part_of(const struct collnet_piece *piece, unsigned member) {
  size_t count = piece->call.count;
  size_t each = (count + piece->group->members - 1) / piece->group->members;
  each = (each + PART_ELEMENTS - 1) / PART_ELEMENTS * PART_ELEMENTS;
  size_t begin = each * member < count ? each * member : count;
  size_t end = begin + each < count ? begin + each : count;
  return (struct span){ begin, end - begin };
}

/* What this member reduces. */
static struct span own_part(const struct collnet_piece *piece) {
  return part_of(piece, piece->group->member);
}

static bool is_peer(const struct collnet_group *group, unsigned member) {
  return member != group->member;
}

/* The i-th peer, from 1: first the next one, so that members do not all send to the same one at the
 * same time. */
static unsigned peer_of(const struct collnet_group *group, enum collnet_way way, unsigned i) {
  unsigned distance = way == COLLNET_SEND ? i : group->members - i;
  return (group->member + distance) % group->members;
}

/* ---- staging: contributions of all members to this one's part; then, in 16 bits, the message ----
 */

static size_t contribution_offset(const struct collnet_piece *piece, unsigned member) {
  return own_part(piece).count * piece->wire_bytes * member;
}

static uint8_t *contribution(const struct collnet_piece *piece, unsigned member) {
  return piece->staging.data + contribution_offset(piece, member);
}

static uint8_t *compressed(const struct collnet_piece *piece, size_t element) {
  return contribution(piece, piece->group->members) + element * piece->wire_bytes;
}

static int take_staging(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  size_t bytes = contribution_offset(piece, group->members);
  bytes += piece->is_compressed ? piece->call.count * piece->wire_bytes : 0;
  if (group->spare_stagings) {
    piece->staging = group->spare_staging[--group->spare_stagings];
    group->spare_staging[group->spare_stagings].data = NULL;
  }
  if (bytes > piece->staging.bytes) {
    free(piece->staging.data);
    piece->staging = (struct collnet_staging){ malloc(bytes), bytes };
    if (!piece->staging.data) {
      piece->staging.bytes = 0;
      return -ENOMEM;
    }
  }
  return 0;
}

static void give_staging(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  group->spare_staging[group->spare_stagings++] = piece->staging;
  piece->staging = (struct collnet_staging){ 0 };
}

/* ---- messages ---- */

struct place {
  void *data;
  size_t bytes;
  const struct memory *memory;
};

static struct place user_place(const struct collnet_piece *piece, bool is_send, struct span span) {
  const struct collnet_call *call = &piece->call;
  size_t size = reduce_element_bytes(call->type);
  const struct collnet_memory *memory = is_send ? call->send_memory : call->recv_memory;
  uint8_t *data = is_send ? (uint8_t *)(uintptr_t)call->send : call->recv;
  return (struct place){ data + span.begin * size, span.count * size,
                         group_memory(memory, is_send) };
}

static struct place message_place(const struct collnet_piece *piece, enum collnet_phase phase,
                                  enum collnet_way way, unsigned member) {
  if (phase == COLLNET_CONTRIBUTE && way == COLLNET_RECEIVE) {
    return (struct place){ contribution(piece, member), own_part(piece).count * piece->wire_bytes,
                           NULL };
  }
  bool is_own = phase == COLLNET_RESULT && way == COLLNET_SEND;
  struct span span = part_of(piece, is_own ? piece->group->member : member);
  if (piece->is_compressed) {
    return (struct place){ compressed(piece, span.begin), span.count * piece->wire_bytes, NULL };
  }
  return user_place(piece, phase == COLLNET_CONTRIBUTE, span);
}

static struct collnet_message *message_of(const struct collnet_piece *piece,
                                          enum collnet_phase phase, enum collnet_way way,
                                          unsigned member) {
  return &piece->messages[collnet_index(piece->group, phase, way, member)];
}

/* May it be posted, as far as its own piece goes? A result replaces what was sent, where both are
 * in the same memory: not before that needs no retransmission. */
static bool is_ready(const struct collnet_piece *piece, enum collnet_phase phase,
                     enum collnet_way way, unsigned member) {
  if (phase == COLLNET_CONTRIBUTE) {
    return true;
  }
  if (way == COLLNET_SEND) {
    return piece->is_reduced;
  }
  bool is_shared = piece->is_compressed || piece->call.send == piece->call.recv;
  return !is_shared || message_of(piece, COLLNET_CONTRIBUTE, COLLNET_SEND, member)->is_done;
}

static void message_done(struct collnet_piece *piece, enum collnet_phase phase,
                         enum collnet_way way, unsigned member) {
  message_of(piece, phase, way, member)->is_done = true;
  piece->messages_left--;
  if (phase == COLLNET_CONTRIBUTE && way == COLLNET_RECEIVE) {
    piece->contributions_left--;
  }
  if (phase == COLLNET_RESULT && way == COLLNET_RECEIVE && piece->is_compressed) {
    struct span span = part_of(piece, member);
    struct place to = user_place(piece, false, span);
    reduce_widen(piece->group->variant, memory_address(to.memory, to.data),
                 compressed(piece, span.begin), span.count, piece->wire_type);
  }
}

static int post(struct collnet_path *path, const struct place *place,
                struct collnet_message *message) {
  int rc =
      plugin_post(path->connection, place->data, place->bytes, place->memory, &message->request);
  path->posted += !rc && message->request;
  return rc;
}

static int message_advance(struct collnet_piece *piece, enum collnet_phase phase,
                           enum collnet_way way, unsigned member) {
  struct collnet_path *path = collnet_path(piece->group, phase, way, member);
  struct collnet_message *message = message_of(piece, phase, way, member);
  struct place place = message_place(piece, phase, way, member);
  if (!message->request) {
    if (path->posted != piece->number || !is_ready(piece, phase, way, member)) {
      return 0;
    }
    if (place.bytes == 0) {
      path->posted++;
      message_done(piece, phase, way, member);
      return 0;
    }
    int rc = post(path, &place, message);
    if (rc || !message->request) {
      return rc;
    }
  }
  bool is_done;
  size_t bytes = 0;
  int rc = plugin_test(message->request, &is_done, &bytes);
  if (!rc && is_done) {
    message->request = NULL;
    if (bytes != place.bytes) {
      LOG_WARN("CollNet: member %u sent %zu bytes where %zu were expected: the hosts do not run "
               "the same operation",
               member, bytes, place.bytes);
      return -EPROTO;
    }
    message_done(piece, phase, way, member);
  }
  return rc;
}

/* ---- reduction ---- */

static void reduce_own_part(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  const struct collnet_call *call = &piece->call;
  struct span own = own_part(piece);
  struct place from = user_place(piece, true, own), to = user_place(piece, false, own);
  const void *sources[COLLNET_MEMBERS_MAX];
  for (unsigned member = 0; member < group->members; member++) {
    sources[member] = is_peer(group, member) ? contribution(piece, member)
                                             : memory_address(from.memory, from.data);
  }
  void *result = memory_address(to.memory, to.data);
  if (piece->is_compressed) {
    reduce_from_wire(group->variant, compressed(piece, own.begin), result, sources, group->members,
                     group->member, own.count, piece->wire_type, &group->counters);
  } else {
    reduce_n(group->variant, result, sources, group->members, own.count, call->type, call->op);
  }
  piece->is_reduced = true;
}

/* ---- pieces ---- */

static size_t piece_bytes(const struct collnet_piece *piece) {
  return piece->call.count * reduce_element_bytes(piece->call.type);
}

static void compress_contributions(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  for (unsigned member = 0; member < group->members; member++) {
    if (is_peer(group, member)) {
      struct span span = part_of(piece, member);
      struct place from = user_place(piece, true, span);
      reduce_narrow(group->variant, compressed(piece, span.begin),
                    memory_address(from.memory, from.data), span.count, piece->wire_type,
                    &group->counters);
    }
  }
}

static bool compresses(const struct collnet_group *group, const struct collnet_call *call) {
  return group->mode != COLLNET_FULL && call->type == REDUCE_FLOAT32 && call->op == REDUCE_SUM;
}

/* The next one of a request. */
static int start_piece(struct collnet_request *request, struct collnet_piece *piece) {
  struct collnet_group *group = request->group;
  const struct collnet_call *call = &request->call;
  size_t size = reduce_element_bytes(call->type), begin = request->started * size;
  size_t left = call->count - request->started, most = COLLNET_BYTES_MAX / size;
  piece->request = request;
  piece->number = group->pieces_started;
  piece->call = *call;
  piece->call.send = (const uint8_t *)call->send + begin;
  piece->call.recv = (uint8_t *)call->recv + begin;
  piece->call.count = left < most ? left : most;
  piece->is_compressed = compresses(group, call);
  piece->wire_type = group->mode == COLLNET_FP16 ? REDUCE_WIRE_FLOAT16 : REDUCE_WIRE_BFLOAT16;
  piece->wire_bytes = piece->is_compressed ? 2 : size;
  int rc = take_staging(piece);
  if (rc) {
    return rc;
  }
  piece->is_reduced = false;
  piece->contributions_left = group->members - 1;
  piece->messages_left = COLLNET_PHASES * COLLNET_WAYS * (group->members - 1);
  memset(piece->messages, 0,
         sizeof(*piece->messages) * COLLNET_PHASES * COLLNET_WAYS * group->members);
  if (piece->is_compressed) {
    compress_contributions(piece);
  }
  piece->is_in_use = true;
  request->started += piece->call.count;
  group->bytes_in_flight += piece_bytes(piece);
  group->pieces_started++;
  return 0;
}

/* As many as there is room for, in the order of the calls. */
static int start_pieces(struct collnet_group *group) {
  int rc = 0;
  while (!rc && group->starting < group->calls) {
    struct collnet_request *request = &group->requests[group->starting % COLLNET_REQUESTS];
    struct collnet_piece *piece = &group->pieces[group->pieces_started % COLLNET_REQUESTS];
    if (request->started == request->call.count) {
      group->starting++;
    } else if (piece->is_in_use || group->bytes_in_flight >= COLLNET_IN_FLIGHT_BYTES) {
      break;
    } else {
      rc = start_piece(request, piece);
    }
  }
  return rc;
}

static void finish_piece(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  piece->request->finished += piece->call.count;
  group->bytes_in_flight -= piece_bytes(piece);
  give_staging(piece);
  piece->is_in_use = false;
  while (group->oldest < group->pieces_started &&
         !group->pieces[group->oldest % COLLNET_REQUESTS].is_in_use) {
    group->oldest++;
  }
}

static int advance_piece(struct collnet_piece *piece) {
  struct collnet_group *group = piece->group;
  for (unsigned phase = 0; phase < COLLNET_PHASES; phase++) {
    for (unsigned way = 0; way < COLLNET_WAYS; way++) {
      for (unsigned i = 1; i < group->members; i++) {
        unsigned member = peer_of(group, way, i);
        if (!message_of(piece, phase, way, member)->is_done) {
          int rc = message_advance(piece, phase, way, member);
          if (rc) {
            return rc;
          }
        }
      }
    }
    if (phase == COLLNET_CONTRIBUTE && !piece->is_reduced && !piece->contributions_left) {
      reduce_own_part(piece);
    }
  }
  if (!piece->messages_left && piece->is_reduced) {
    finish_piece(piece);
  }
  return 0;
}

/* All pieces in flight, the oldest first. */
static int advance_group(struct collnet_group *group) {
  if (!group->error) {
    group->error = start_pieces(group);
  }
  for (uint64_t number = group->oldest; !group->error && number < group->pieces_started; number++) {
    struct collnet_piece *piece = &group->pieces[number % COLLNET_REQUESTS];
    if (piece->is_in_use) {
      group->error = advance_piece(piece);
    }
  }
  return group->error;
}

/* ---- calls ---- */

static int start_call(struct collnet_group *group, const struct collnet_call *call,
                      struct collnet_request **out) {
  struct collnet_request *request = &group->requests[group->calls % COLLNET_REQUESTS];
  *out = NULL;
  if (group->error || request->is_in_use) {
    return group->error;
  }
  *request = (struct collnet_request){ .group = group, .is_in_use = true, .call = *call };
  group->calls++;
  if (!compresses(group, call)) { /* else results come into our own memory */
    group_receives_into(call->recv_memory);
  }
  *out = request;
  return advance_group(group);
}

int collnet_allreduce(struct collnet_group *group, const struct collnet_call *call,
                      struct collnet_request **out) {
  pthread_mutex_lock(&group->lock);
  int rc = start_call(group, call, out);
  pthread_mutex_unlock(&group->lock);
  return rc;
}

int collnet_test(struct collnet_request *request, bool *is_done, size_t *bytes) {
  struct collnet_group *group = request->group;
  pthread_mutex_lock(&group->lock);
  int rc = advance_group(group);
  *is_done = !rc && request->finished == request->call.count;
  if (*is_done) {
    *bytes = request->call.count * reduce_element_bytes(request->call.type);
    request->is_in_use = false;
    group_count(group, *bytes);
  }
  pthread_mutex_unlock(&group->lock);
  return rc;
}
