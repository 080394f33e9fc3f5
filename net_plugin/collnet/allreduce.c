/* SPDX-License-Identifier: Apache-2.0 */
/* One AllReduce: both phases of all calls under way, driven by collnet_test.
 *
 * A message is posted to its connection in the order of the calls. A call's second phase may wait
 * while later calls are in their first, hence a connection per phase. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/plugin/transfer.h"

/* Parts begin at multiples of this many elements, so that no two members write one cache line:
 * 64 bytes of the smallest type. */
#define PART_ELEMENTS 64
/* Up to so many bytes to all members together, everyone sends everything to everyone and reduces
 * all of it: one phase instead of two. */
#define SMALL_BYTES (16u << 10)

/* ---- parts ---- */

struct span {
  size_t begin, count; /* elements */
};

static struct span part_of(const struct collnet_request *request, unsigned member) {
  size_t count = request->call.count;
  size_t each = (count + request->group->members - 1) / request->group->members;
  each = (each + PART_ELEMENTS - 1) / PART_ELEMENTS * PART_ELEMENTS;
  size_t begin = each * member < count ? each * member : count;
  size_t end = begin + each < count ? begin + each : count;
  return (struct span){ begin, end - begin };
}

/* What this member reduces. */
static struct span own_part(const struct collnet_request *request) {
  return request->is_small ? (struct span){ 0, request->call.count }
                           : part_of(request, request->group->member);
}

static bool is_peer(const struct collnet_group *group, unsigned member) {
  return member != group->member;
}

/* ---- staging: contributions of all members to this one's part; then, in 16 bits, the message ----
 */

static size_t contribution_offset(const struct collnet_request *request, unsigned member) {
  return own_part(request).count * request->wire_bytes * member;
}

static uint8_t *contribution(const struct collnet_request *request, unsigned member) {
  return request->staging + contribution_offset(request, member);
}

static uint8_t *compressed(const struct collnet_request *request, size_t element) {
  return contribution(request, request->group->members) + element * request->wire_bytes;
}

static int reserve_staging(struct collnet_request *request) {
  size_t bytes = contribution_offset(request, request->group->members);
  bytes += request->is_compressed ? request->call.count * request->wire_bytes : 0;
  if (bytes > request->staging_bytes) {
    uint8_t *larger = malloc(bytes);
    if (!larger) {
      return -ENOMEM;
    }
    free(request->staging);
    request->staging = larger;
    request->staging_bytes = bytes;
  }
  return 0;
}

/* ---- messages ---- */

struct place {
  void *data;
  size_t bytes;
  const struct memory *memory;
};

static struct place user_place(const struct collnet_request *request, bool is_send,
                               struct span span) {
  const struct collnet_call *call = &request->call;
  size_t size = reduce_element_bytes(call->type);
  const struct collnet_memory *memory = is_send ? call->send_memory : call->recv_memory;
  uint8_t *data = is_send ? (uint8_t *)(uintptr_t)call->send : call->recv;
  return (struct place){ data + span.begin * size, span.count * size,
                         memory ? memory->memory : NULL };
}

static struct place message_place(const struct collnet_request *request, enum collnet_phase phase,
                                  enum collnet_way way, unsigned member) {
  if (phase == COLLNET_CONTRIBUTE && way == COLLNET_RECEIVE) {
    return (struct place){ contribution(request, member),
                           own_part(request).count * request->wire_bytes, NULL };
  }
  if (request->is_small) { /* the second phase is left out */
    return phase == COLLNET_RESULT ? (struct place){ 0 }
                                   : user_place(request, true, own_part(request));
  }
  bool is_own = phase == COLLNET_RESULT && way == COLLNET_SEND;
  struct span span = part_of(request, is_own ? request->group->member : member);
  if (request->is_compressed) {
    return (struct place){ compressed(request, span.begin), span.count * request->wire_bytes,
                           NULL };
  }
  return user_place(request, phase == COLLNET_CONTRIBUTE, span);
}

static struct collnet_message *message_of(const struct collnet_request *request,
                                          enum collnet_phase phase, enum collnet_way way,
                                          unsigned member) {
  return &request->messages[collnet_index(request->group, phase, way, member)];
}

/* May it be posted, as far as its own call goes? A result replaces what was sent, where both are in
 * the same memory: not before that needs no retransmission. */
static bool is_ready(const struct collnet_request *request, enum collnet_phase phase,
                     enum collnet_way way, unsigned member) {
  if (phase == COLLNET_CONTRIBUTE) {
    return true;
  }
  if (way == COLLNET_SEND) {
    return request->is_reduced;
  }
  bool is_shared = request->is_compressed || request->call.send == request->call.recv;
  return !is_shared || message_of(request, COLLNET_CONTRIBUTE, COLLNET_SEND, member)->is_done;
}

/* The reduction writes what was sent: no retransmission may need it any more. */
static bool overwrites_sent(const struct collnet_request *request) {
  return request->is_small && request->call.send == request->call.recv;
}

static void message_done(struct collnet_request *request, enum collnet_phase phase,
                         enum collnet_way way, unsigned member) {
  message_of(request, phase, way, member)->is_done = true;
  request->messages_left--;
  if (phase == COLLNET_CONTRIBUTE && (way == COLLNET_RECEIVE || overwrites_sent(request))) {
    request->contributions_left--;
  }
  if (phase == COLLNET_RESULT && way == COLLNET_RECEIVE && request->is_compressed) {
    struct span span = part_of(request, member);
    struct place to = user_place(request, false, span);
    reduce_widen(request->group->variant, memory_address(to.memory, to.data),
                 compressed(request, span.begin), span.count, request->wire_type);
  }
}

static int post(struct collnet_path *path, enum collnet_way way, const struct place *place,
                struct collnet_message *message) {
  int rc = way == COLLNET_SEND ? transfer_isend(path->connection, place->data, place->bytes,
                                                place->memory, NULL, NULL, &message->request)
                               : transfer_irecv(path->connection, place->data, place->bytes,
                                                place->memory, NULL, NULL, &message->request);
  path->posted += !rc && message->request;
  return rc;
}

static int message_advance(struct collnet_request *request, enum collnet_phase phase,
                           enum collnet_way way, unsigned member) {
  struct collnet_path *path = collnet_path(request->group, phase, way, member);
  struct collnet_message *message = message_of(request, phase, way, member);
  struct place place = message_place(request, phase, way, member);
  if (!message->request) {
    if (path->posted != request->number || !is_ready(request, phase, way, member)) {
      return 0;
    }
    if (place.bytes == 0) {
      path->posted++;
      message_done(request, phase, way, member);
      return 0;
    }
    int rc = post(path, way, &place, message);
    if (rc || !message->request) {
      return rc;
    }
  }
  bool is_done;
  size_t bytes = 0;
  int rc = transfer_test(message->request, &is_done, &bytes);
  if (!rc && is_done) {
    message->request = NULL;
    if (bytes != place.bytes) {
      LOG_WARN("CollNet: member %u sent %zu bytes where %zu were expected: the hosts do not run "
               "the same operation",
               member, bytes, place.bytes);
      return -EPROTO;
    }
    message_done(request, phase, way, member);
  }
  return rc;
}

/* ---- reduction ---- */

static void reduce_own_part(struct collnet_request *request) {
  struct collnet_group *group = request->group;
  const struct collnet_call *call = &request->call;
  struct span own = own_part(request);
  struct place from = user_place(request, true, own), to = user_place(request, false, own);
  const void *sources[COLLNET_MEMBERS_MAX];
  for (unsigned member = 0; member < group->members; member++) {
    sources[member] = is_peer(group, member) ? contribution(request, member)
                                             : memory_address(from.memory, from.data);
  }
  void *result = memory_address(to.memory, to.data);
  if (request->is_compressed) {
    reduce_from_wire(group->variant, compressed(request, own.begin), result, sources,
                     group->members, group->member, own.count, request->wire_type,
                     &group->counters);
  } else {
    reduce_n(group->variant, result, sources, group->members, own.count, call->type, call->op);
  }
  request->is_reduced = true;
}

/* ---- calls ---- */

static int advance_request(struct collnet_request *request) {
  struct collnet_group *group = request->group;
  for (unsigned phase = 0; phase < COLLNET_PHASES; phase++) {
    for (unsigned way = 0; way < COLLNET_WAYS; way++) {
      for (unsigned member = 0; member < group->members; member++) {
        if (is_peer(group, member) && !message_of(request, phase, way, member)->is_done) {
          int rc = message_advance(request, phase, way, member);
          if (rc) {
            return rc;
          }
        }
      }
    }
    if (phase == COLLNET_CONTRIBUTE && !request->is_reduced && !request->contributions_left) {
      reduce_own_part(request);
    }
  }
  return 0;
}

/* All calls under way, the oldest first. */
static int advance_group(struct collnet_group *group) {
  for (uint64_t number = group->oldest; !group->error && number < group->calls; number++) {
    struct collnet_request *request = &group->requests[number % COLLNET_REQUESTS];
    if (request->is_in_use && request->messages_left) {
      group->error = advance_request(request);
    }
  }
  return group->error;
}

static void compress_contributions(struct collnet_request *request) {
  struct collnet_group *group = request->group;
  for (unsigned member = 0; member < group->members; member++) {
    if (is_peer(group, member)) {
      struct span span = part_of(request, member);
      struct place from = user_place(request, true, span);
      reduce_narrow(group->variant, compressed(request, span.begin),
                    memory_address(from.memory, from.data), span.count, request->wire_type,
                    &group->counters);
    }
  }
}

static bool compresses(const struct collnet_group *group, const struct collnet_call *call) {
  return group->mode != COLLNET_FULL && call->type == REDUCE_FLOAT32 && call->op == REDUCE_SUM;
}

int collnet_allreduce(struct collnet_group *group, const struct collnet_call *call,
                      struct collnet_request **out) {
  struct collnet_request *request = &group->requests[group->calls % COLLNET_REQUESTS];
  *out = NULL;
  if (group->error || request->is_in_use) {
    return group->error;
  }
  size_t bytes = call->count * reduce_element_bytes(call->type);
  request->call = *call;
  request->number = group->calls;
  request->is_small = bytes * (group->members - 1) <= SMALL_BYTES;
  request->is_compressed = !request->is_small && compresses(group, call);
  request->wire_type = group->mode == COLLNET_FP16 ? REDUCE_WIRE_FLOAT16 : REDUCE_WIRE_BFLOAT16;
  request->wire_bytes = request->is_compressed ? 2 : reduce_element_bytes(call->type);
  int rc = reserve_staging(request);
  if (rc) {
    return rc;
  }
  request->is_reduced = false;
  request->contributions_left = (group->members - 1) * (overwrites_sent(request) ? 2 : 1);
  request->messages_left = COLLNET_PHASES * COLLNET_WAYS * (group->members - 1);
  memset(request->messages, 0,
         sizeof(*request->messages) * COLLNET_PHASES * COLLNET_WAYS * group->members);
  if (request->is_compressed) {
    compress_contributions(request);
  }
  request->is_in_use = true;
  group->calls++;
  *out = request;
  return advance_group(group);
}

int collnet_test(struct collnet_request *request, bool *is_done, size_t *bytes) {
  struct collnet_group *group = request->group;
  int rc = advance_group(group);
  *is_done = !rc && request->messages_left == 0 && request->is_reduced;
  if (*is_done) {
    *bytes = request->call.count * reduce_element_bytes(request->call.type);
    request->is_in_use = false;
    group_count(group, *bytes);
    while (group->oldest < group->calls &&
           !group->requests[group->oldest % COLLNET_REQUESTS].is_in_use) {
      group->oldest++;
    }
  }
  return rc;
}
