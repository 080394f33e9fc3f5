/* SPDX-License-Identifier: Apache-2.0 */
/* stratus: the owner of the lanes of real links, as the engine and its TCP lanes are: frames are
 * written to streams, read when all of them has arrived; orders are carried out by dials. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "net_plugin/lane/limits.h"
#include "net_plugin/link/link.h"
#include "net_plugin/policy/policy.h"
#include "net_plugin/policy/policy_shared.h"
#include "net_plugin/setup/limits.h"
#include "net_plugin/setup/settings.h"
#include "tests/scale/transport.h"

/* As STRATUS_CHUNK_BYTES and the others have them. */
#define USUAL_CHUNK_BYTES (128u << 10)
#define LINK_TIMEOUT_NS (10 * NS_PER_S)
#define STOPPED_TIMEOUT_NS (300 * NS_PER_S)
/* CPU time of a connect and its handshake on both ends; its round trips come on top. As at
 * FLOW_COUNT_FLOWS_MAX in net_plugin/policy/limits.h. */
#define DIAL_NS 500000u
/* A dial through a NIC that is down: the kernel answers at once that there is no route. */
#define DIAL_FAILS_NS 1000000u
#define TIMER_NS 1000u /* no timer is shorter */
#define UNTAKEN 64u    /* posts that wait, at most */
#define FRAMES 2048u   /* on the way on a lane, one way: LINK_FLIGHT chunks, and others */

struct frame {
  uint64_t end; /* in the stream */
  uint8_t header[WIRE_HEADER_BYTES];
  uint8_t *payload; /* of a control frame; data is not copied */
};

struct way {
  struct stream stream;
  struct frame frames[FRAMES];
  unsigned first, count; /* not read yet */
  unsigned seen;         /* of these, handed to the reader */
};

struct lane {
  struct side *sides[2];
  unsigned index;
  uint32_t epoch;
  bool is_up;
  bool is_writing[2];
  struct link_frame writing[2]; /* until the thread is done with it */
  struct way ways[2];           /* by the role that writes */
};

struct side {
  struct connection *connection;
  enum link_role role;
  struct link *link;
  uint64_t deadline_ns, timer_ns;
  unsigned thread;
  bool has_pump;    /* an event that pumps is on its way */
  unsigned untaken; /* sender: posts that wait, as the link has no room for more messages */
  uint64_t untaken_bytes[UNTAKEN];
};

struct connection {
  struct stratus *stratus;
  unsigned number;
  struct side sides[2];
  struct lane lanes[WIRE_MAX_LANES];
};

struct stratus {
  struct transport transport;
  struct policy_shared shared;
  uint8_t *out, *in; /* what all messages are read from and written to */
  struct connection connections[TRANSPORT_CONNECTIONS_MAX];
};

static uint64_t now_of(const struct side *side) {
  return side->connection->stratus->transport.events->now_ns;
}

static enum link_role other(enum link_role role) {
  return role == LINK_SENDER ? LINK_RECEIVER : LINK_SENDER;
}

static void pump(struct side *side);

/* ---- frames ---- */

static void way_reset(struct way *way) {
  for (; way->count > 0; way->count--) {
    free(way->frames[way->first].payload);
    way->first = (way->first + 1) % FRAMES;
  }
  way->seen = 0;
  network_close(&way->stream);
}

static void lane_close(struct lane *lane) {
  lane->is_up = false;
  for (int role = 0; role < 2; role++) {
    lane->is_writing[role] = false;
    way_reset(&lane->ways[role]);
  }
}

static void notice_loss(void *owner, uint64_t epoch) {
  struct lane *lane = owner;
  for (int role = 0; role < 2; role++) {
    link_lane_lost(lane->sides[role]->link, lane->index, (uint32_t)epoch,
                   now_of(lane->sides[role]));
    pump(lane->sides[role]);
  }
}

/* A link refuses it: both ends learn that the lane is gone. */
static void lane_break(struct lane *lane) {
  uint32_t epoch = lane->epoch;
  lane_close(lane);
  events_add(lane->sides[0]->connection->stratus->transport.events, now_of(lane->sides[0]),
             notice_loss, lane, epoch);
}

static void put_frame(struct lane *lane, enum link_role role) {
  struct way *way = &lane->ways[role];
  const struct link_frame *frame = &lane->writing[role];
  assert(way->count < FRAMES);
  struct frame *put = &way->frames[(way->first + way->count++) % FRAMES];
  put->end = way->stream.written_bytes + WIRE_HEADER_BYTES + frame->length;
  memcpy(put->header, frame->header, WIRE_HEADER_BYTES);
  put->payload = NULL;
  if (role == LINK_RECEIVER && frame->length > 0) {
    put->payload = transport_memory(frame->length);
    memcpy(put->payload, frame->payload, frame->length);
  }
  lane->is_writing[role] = false;
  network_write(&way->stream, WIRE_HEADER_BYTES + frame->length);
}

/* argument: epoch and role. */
static void frame_is_written(void *owner, uint64_t argument) {
  struct lane *lane = owner;
  enum link_role role = argument & 1 ? LINK_RECEIVER : LINK_SENDER;
  if (lane->epoch != argument >> 1 || !lane->is_writing[role]) {
    return;
  }
  put_frame(lane, role);
  pump(lane->sides[role]);
}

static void tell_completed(struct side *side) {
  struct connection *connection = side->connection;
  struct transport_user *user = &connection->stratus->transport.user;
  for (uint64_t bytes; link_next_completion(side->link, &bytes);) {
    (side->role == LINK_SENDER ? user->sent : user->received)(user->user, connection->number);
  }
}

static void frame_is_read(void *owner, uint64_t argument) {
  struct lane *lane = owner;
  enum link_role from = argument & 1 ? LINK_RECEIVER : LINK_SENDER;
  struct way *way = &lane->ways[from];
  if (lane->epoch != argument >> 1 || !lane->is_up || way->seen == 0) {
    return;
  }
  struct frame frame = way->frames[way->first];
  way->first = (way->first + 1) % FRAMES;
  way->count--;
  way->seen--;
  struct side *side = lane->sides[other(from)];
  struct wire_header header;
  int error = wire_header_decode(frame.header, &header);
  error = error ? error : link_frame_received(side->link, lane->index, &header, now_of(side));
  if (!error && frame.payload) {
    memcpy(link_receive_buffer(side->link, lane->index), frame.payload, header.length);
  }
  error = error ? error : link_frame_completed(side->link, lane->index, now_of(side));
  free(frame.payload);
  if (error) {
    lane_break(lane);
  }
  tell_completed(side);
  pump(side);
}

static void way_arrived(struct stream *stream) {
  struct lane *lane = stream->user;
  enum link_role from = stream == &lane->ways[LINK_SENDER].stream ? LINK_SENDER : LINK_RECEIVER;
  struct way *way = &lane->ways[from];
  struct transport *transport = &lane->sides[0]->connection->stratus->transport;
  while (way->seen < way->count &&
         way->frames[(way->first + way->seen) % FRAMES].end <= stream->arrived_bytes) {
    const struct frame *frame = &way->frames[(way->first + way->seen++) % FRAMES];
    struct wire_header header;
    bool is_data = from == LINK_SENDER && wire_header_decode(frame->header, &header) == 0;
    uint64_t at_ns =
        transport_work(transport, lane->sides[other(from)]->thread, is_data ? header.length : 0);
    events_add(transport->events, at_ns, frame_is_read, lane,
               (uint64_t)lane->epoch << 1 | (from == LINK_RECEIVER));
  }
}

static bool has_room(const struct lane *lane, enum link_role role) {
  return lane->is_up && !lane->is_writing[role] &&
         lane->ways[role].stream.queued_bytes < TCP_UNSENT_BYTES;
}

static void way_departed(struct stream *stream) {
  struct lane *lane = stream->user;
  enum link_role role = stream == &lane->ways[LINK_SENDER].stream ? LINK_SENDER : LINK_RECEIVER;
  if (has_room(lane, role)) {
    pump(lane->sides[role]);
  }
}

/* ---- orders ---- */

static unsigned nic_of(const struct lane *lane) {
  return lane->index % lane->sides[0]->connection->stratus->transport.config.network.nics;
}

static bool lane_is_cut(const struct lane *lane) {
  return lane->sides[0]->connection->stratus->transport.network.nics[nic_of(lane)].is_down;
}

static void dial_ends(void *owner, uint64_t epoch) {
  struct lane *lane = owner;
  struct connection *connection = lane->sides[0]->connection;
  struct transport *transport = &connection->stratus->transport;
  struct link *sender = connection->sides[LINK_SENDER].link;
  struct link *receiver = connection->sides[LINK_RECEIVER].link;
  uint64_t now_ns = transport->events->now_ns;
  if (lane_is_cut(lane) || !link_lane_fence(receiver, lane->index, (uint32_t)epoch, now_ns)) {
    link_lane_lost(sender, lane->index, (uint32_t)epoch, now_ns);
  } else {
    lane_close(lane);
    lane->is_up = true;
    lane->epoch = (uint32_t)epoch;
    unsigned path = transport_draw_path(transport);
    for (int role = 0; role < 2; role++) {
      network_open(&transport->network, &lane->ways[role].stream, nic_of(lane), path);
    }
    link_lane_up(receiver, lane->index, lane->epoch, now_ns);
    link_lane_up(sender, lane->index, lane->epoch, now_ns);
  }
  pump(&connection->sides[LINK_RECEIVER]);
  pump(&connection->sides[LINK_SENDER]);
}

static void carry_out(struct side *side, const struct link_order *order) {
  struct transport *transport = &side->connection->stratus->transport;
  struct lane *lane = &side->connection->lanes[order->lane];
  if (order->kind == LINK_ORDER_OPEN) {
    uint64_t after_ns =
        lane_is_cut(lane) ? DIAL_FAILS_NS : DIAL_NS + 4 * transport->config.network.latency_ns;
    events_add(transport->events, now_of(side) + after_ns, dial_ends, lane, order->epoch);
  } else if (order->kind == LINK_ORDER_CLOSE && lane->is_up && lane->epoch <= order->epoch) {
    lane_break(lane);
  }
}

/* ---- the links' turn ---- */

static void pump_later(void *owner, uint64_t argument) {
  struct side *side = owner;
  side->has_pump = false;
  pump(side);
}

static void pump_at(struct side *side, uint64_t at_ns) {
  if (!side->has_pump) {
    side->has_pump = true;
    events_add(side->connection->stratus->transport.events, at_ns, pump_later, side, 0);
  }
}

static void timer_ends(void *owner, uint64_t argument) {
  struct side *side = owner;
  uint64_t now_ns = now_of(side);
  if (argument != side->timer_ns) {
    return;
  }
  side->timer_ns = EVENTS_NEVER;
  if (side->deadline_ns <= now_ns) {
    if (link_wants_evidence(side->link, now_ns)) {
      link_host_answered(side->link, now_ns, now_ns);
    }
    link_time_passed(side->link, now_ns);
  }
  pump(side);
}

static void waits(struct side *side, uint64_t deadline_ns) {
  int status = link_status(side->link);
  if (status) {
    fprintf(stderr, "scale: a link has failed: %s\n", strerror(-status));
    exit(1);
  }
  side->deadline_ns = deadline_ns;
  if (deadline_ns < side->timer_ns) {
    uint64_t soon_ns = now_of(side) + TIMER_NS; /* the deadline may have passed */
    side->timer_ns = deadline_ns > soon_ns ? deadline_ns : soon_ns;
    events_add(side->connection->stratus->transport.events, side->timer_ns, timer_ends, side,
               side->timer_ns);
  }
  tell_completed(side);
}

static struct link_ready ready(const struct side *side) {
  struct link_ready ready = { 0 };
  for (unsigned i = 0; i < WIRE_MAX_LANES; i++) {
    const struct lane *lane = &side->connection->lanes[i];
    ready.writable |= has_room(lane, side->role) ? lane_bit(i) : 0;
    ready.taken |= lane->is_writing[side->role] ? 0 : lane_bit(i);
  }
  return ready;
}

static void write_frame(struct side *side, const struct link_step *step) {
  struct transport *transport = &side->connection->stratus->transport;
  struct lane *lane = &side->connection->lanes[step->lane];
  lane->is_writing[side->role] = true;
  lane->writing[side->role] = step->frame;
  uint64_t bytes = side->role == LINK_SENDER ? step->frame.length : 0;
  events_add(transport->events, transport_work(transport, side->thread, bytes), frame_is_written,
             lane, (uint64_t)lane->epoch << 1 | (side->role == LINK_RECEIVER));
}

/* The oldest first, as many as the link has room for. */
static void post_untaken(struct side *side) {
  struct stratus *stratus = side->connection->stratus;
  unsigned taken = 0;
  while (taken < side->untaken &&
         link_send_posted(side->link, stratus->out, side->untaken_bytes[taken], NULL,
                          now_of(side)) == 0) {
    taken++;
  }
  side->untaken -= taken;
  memmove(side->untaken_bytes, side->untaken_bytes + taken,
          side->untaken * sizeof *side->untaken_bytes);
}

/* What the kernel counts. The readers' kernels always have room: credit bounds what is sent. It
 * hears at once of what has arrived, and nothing is lost. */
static void measure_lanes(struct side *side) {
  const struct transport *owner = &side->connection->stratus->transport;
  uint64_t rtt_us = 2 * owner->config.network.latency_ns / 1000;
  uint64_t wanted = link_wants_measured(side->link, now_of(side));
  for (; wanted; wanted &= wanted - 1) {
    unsigned index = (unsigned)__builtin_ctzll(wanted);
    const struct lane *lane = &side->connection->lanes[index];
    const struct stream *stream = &lane->ways[side->role].stream;
    if (lane->is_up) {
      struct policy_transport transport = { .busy_us = network_busy_ns(stream) / 1000,
                                            .is_app_limited = stream->is_app_limited,
                                            .acked_bytes = stream->arrived_bytes,
                                            .has_unacked =
                                                stream->written_bytes > stream->arrived_bytes,
                                            .rtt_min_us = rtt_us };
      link_lane_measured(side->link, index, &transport, now_of(side));
    }
  }
}

/* One frame at a time, as the thread has time for it. */
static void pump(struct side *side) {
  struct transport *transport = &side->connection->stratus->transport;
  struct link_step step;
  for (;;) {
    if (transport->free_ns[side->thread] > now_of(side)) {
      pump_at(side, transport->free_ns[side->thread]);
      return;
    }
    measure_lanes(side);
    post_untaken(side);
    struct link_ready lanes = ready(side);
    switch (link_step(side->link, &lanes, now_of(side), &step)) {
    case LINK_STEP_ORDER:
      carry_out(side, &step.order);
      break;
    case LINK_STEP_WRITE:
      write_frame(side, &step);
      break;
    case LINK_STEP_WAIT:
      waits(side, step.deadline_ns);
      return;
    }
  }
}

/* ---- the transport ---- */

static void stratus_send(struct transport *transport, unsigned number, uint64_t bytes) {
  struct side *side = &((struct stratus *)transport)->connections[number].sides[LINK_SENDER];
  assert(side->untaken < UNTAKEN);
  side->untaken_bytes[side->untaken++] = bytes;
  pump_at(side, now_of(side)); /* it may come from a completion: not at once */
}

static void stratus_receive(struct transport *transport, unsigned number, uint64_t bytes) {
  struct stratus *stratus = (struct stratus *)transport;
  struct side *side = &stratus->connections[number].sides[LINK_RECEIVER];
  if (link_receive_posted(side->link, stratus->in, bytes, NULL, now_of(side))) {
    abort();
  }
  pump_at(side, now_of(side));
}

static void stratus_free(struct transport *transport) {
  struct stratus *stratus = (struct stratus *)transport;
  for (unsigned c = 0; c < transport->config.connections; c++) {
    struct connection *connection = &stratus->connections[c];
    for (unsigned i = 0; i < WIRE_MAX_LANES; i++) {
      lane_close(&connection->lanes[i]);
    }
    for (int role = 0; role < 2; role++) {
      link_end(connection->sides[role].link);
      free(connection->sides[role].link);
    }
  }
  network_free(&transport->network);
  free(stratus->out);
  free(stratus->in);
  free(stratus);
}

static struct link *make_link(struct stratus *stratus, enum link_role role, unsigned number) {
  unsigned nics = stratus->transport.config.network.nics;
  struct link_config config = {
    .role = role,
    .policy = { .lanes = WIRE_MAX_LANES,
                .first_lanes = SETTINGS_LANES_PER_NIC * nics,
                .chunk_bytes = SETTINGS_QUICK_CHUNKS * USUAL_CHUNK_BYTES,
                .usual_chunk_bytes = USUAL_CHUNK_BYTES,
                .paths = nics,
                .shared = &stratus->shared,
                .reconnects_slow_lanes = true,
                .learns_lanes = true },
    .eager_bytes = USUAL_CHUNK_BYTES,
    .eager_slots = SETTINGS_EAGER_SLOTS,
    .timeout_ns = LINK_TIMEOUT_NS,
    .stopped_timeout_ns = STOPPED_TIMEOUT_NS,
    .seed = stratus->transport.config.seed + number,
  };
  return link_init(transport_memory(link_memory_bytes(&config)), &config,
                   stratus->transport.events->now_ns);
}

static void make_lane(struct connection *connection, unsigned index) {
  struct lane *lane = &connection->lanes[index];
  lane->index = index;
  for (int role = 0; role < 2; role++) {
    lane->sides[role] = &connection->sides[role];
    lane->ways[role].stream =
        (struct stream){ .departed = way_departed, .arrived = way_arrived, .user = lane };
  }
}

static void make_connection(struct stratus *stratus, unsigned number) {
  struct connection *connection = &stratus->connections[number];
  connection->stratus = stratus;
  connection->number = number;
  for (int role = 0; role < 2; role++) {
    connection->sides[role] = (struct side){
      .connection = connection,
      .role = (enum link_role)role,
      .link = make_link(stratus, (enum link_role)role, number),
      .thread = transport_thread(number, role == LINK_RECEIVER),
      .deadline_ns = EVENTS_NEVER,
      .timer_ns = EVENTS_NEVER,
    };
  }
  for (unsigned i = 0; i < WIRE_MAX_LANES; i++) {
    make_lane(connection, i);
  }
  dial_ends(&connection->lanes[0], 1); /* the connect opens the first one */
}

struct transport *transport_stratus_new(const struct transport_config *config,
                                        struct events *events, const struct transport_user *user) {
  static const struct transport_ops ops = { stratus_send, stratus_receive, stratus_free };
  struct stratus *stratus = transport_memory(sizeof *stratus);
  transport_begin(&stratus->transport, &ops, config, events, user);
  stratus->out = transport_memory(TRANSPORT_MESSAGE_MAX);
  stratus->in = transport_memory(TRANSPORT_MESSAGE_MAX);
  policy_shared_init(&stratus->shared);
  for (unsigned c = 0; c < config->connections; c++) {
    make_connection(stratus, c);
  }
  return &stratus->transport;
}
