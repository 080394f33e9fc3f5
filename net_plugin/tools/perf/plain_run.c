/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over flows of plain TCP, as fast as one thread can. */
#include "net_plugin/tools/perf/plain_run.h"

#include <string.h>
#include <sys/socket.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/perf/failure.h"
#include "net_plugin/tools/perf/plain.h"
#include "net_plugin/tools/perf/plain_way.h"

/* Being woken costs the other side as much as a few calls, so sleep comes after a while only. */
#define SPIN_NS (20 * NS_PER_US)

enum { LOOK_EVERY_PASSES = 64 };

void plain_run_fill(uint8_t *contents, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    contents[i] = (uint8_t)((i % PLAIN_PERIOD_BYTES * 0x9e3779b9u) >> 24);
  }
}

static const struct plain_way *way_of(const struct plan *plan) {
  return plan->io < PLAN_URING ? &plain_way_calls : &plain_way_uring;
}

/* ---- what the ways report ---- */

/* Where nobody looks at the contents, always the same ones: copying from a page's start is cheaper.
 */
const uint8_t *plain_round_contents(const struct plain_round *round,
                                    const struct plain_flow *flow) {
  size_t number = (size_t)(flow - round->plain->flows);
  if (!round->plain->plan->is_checked) {
    return round->plain->contents;
  }
  return round->plain->contents + (flow->position + number * 997) % PLAIN_PERIOD_BYTES;
}

int plain_round_lost(struct plain_round *round, int error) {
  const struct plan *plan = round->plain->plan;
  if (error == 0 && plan->test == PLAN_LATENCY && plan->is_timed &&
      round->gauge->state == GAUGE_OVER) {
    round->has_ended = true;
    return CLI_OK;
  }
  return failure("a flow was lost: %s", error ? strerror(error) : "closed by the other side");
}

static size_t least(uint64_t a, uint64_t b) {
  return (size_t)(a < b ? a : b);
}

size_t plain_round_take(struct plain_round *round) {
  size_t bytes = least(round->bytes, round->to_send);
  if (round->is_latency) {
    bytes = least(bytes, round->may_send);
    round->may_send -= bytes;
    if (bytes == round->bytes) {
      round->sent_ns = clock_now_ns();
    }
  }
  round->to_send -= bytes;
  return bytes;
}

void plain_round_sent(struct plain_round *round, struct plain_flow *flow, size_t taken,
                      size_t sent) {
  flow->position += sent;
  round->to_send += taken - sent;
  round->may_send += round->is_latency ? taken - sent : 0;
  round->gauge->now.bytes_sent += sent;
  round->gauge->now.messages_sent = round->gauge->now.bytes_sent / round->bytes;
}

/* Each message that has come whole is answered; the client sends first. */
static void hear_ping(struct plain_round *round, size_t bytes) {
  round->of_message += bytes;
  if (round->of_message < round->bytes) {
    return;
  }
  round->of_message -= round->bytes;
  round->may_send += round->bytes;
  if (round->plain->is_client && gauge_is_measuring(round->gauge)) {
    histogram_add(&round->gauge->half_trips, (clock_now_ns() - round->sent_ns) / 2);
  }
}

void plain_round_received(struct plain_round *round, struct plain_flow *flow, const uint8_t *data,
                          size_t bytes) {
  struct counts *now = &round->gauge->now;
  if (round->plain->plan->is_checked) {
    /* Both directions of a ping-pong's flow carry the same. */
    uint64_t position = round->is_latency ? now->bytes_received : flow->position;
    size_t number = (size_t)(flow - round->plain->flows);
    const uint8_t *wanted = round->plain->contents + (position + number * 997) % PLAIN_PERIOD_BYTES;
    round->wrong += memcmp(data, wanted, bytes) != 0;
  }
  flow->position += round->is_latency ? 0 : bytes;
  round->to_receive -= least(bytes, round->to_receive);
  now->bytes_received += bytes;
  now->messages_received = now->bytes_received / round->bytes;
  if (round->is_latency) {
    hear_ping(round, bytes);
  }
}

/* ---- the end ---- */

static int watch(struct plain_round *round, uint64_t now_ns) {
  const struct counts *now = &round->gauge->now;
  struct talk *talk = round->plain->talk;
  json_t *message;
  if (now->bytes_sent + now->bytes_received != round->moved_bytes) {
    round->moved_bytes = now->bytes_sent + now->bytes_received;
    round->moved_ns = now_ns;
  }
  if (now_ns - round->moved_ns > round->plain->plan->patience_ns) {
    return failure("nothing has moved for %.0f s", (double)(now_ns - round->moved_ns) * 1e-9);
  }
  if (now_ns - round->polled_ns < PLAIN_WAIT_MS * NS_PER_MS) {
    return CLI_OK;
  }
  round->polled_ns = now_ns;
  int status = talk_poll(talk, &message);
  if (status == CLI_OK && message && json_object_get(message, "over")) {
    round->is_over_there = true;
  } else if (status == CLI_OK && message) {
    talk_keep(talk, json_incref(message));
  }
  json_decref(message);
  if (status == CLI_OK && round->plain->plan->is_timed && round->gauge->state == GAUGE_OVER &&
      !round->is_over_told) {
    round->is_over_told = true;
    status = talk_say(talk, json_pack("{s:b}", "over", 1));
  }
  return status;
}

static bool is_finished(const struct plain_round *round) {
  if (round->gauge->state != GAUGE_OVER) {
    return false;
  }
  bool is_timed = round->plain->plan->is_timed;
  return round->has_ended || (is_timed ? round->is_over_told && round->is_over_there
                                       : round->to_send == 0 && round->to_receive == 0);
}

/* Whoever sees the flows close before the word "over" came has it still to hear. */
static int hear_over(struct plain_round *round) {
  const struct plan *plan = round->plain->plan;
  json_t *message = NULL;
  if (!plan->is_timed) {
    return CLI_OK;
  }
  int status =
      round->is_over_told ? CLI_OK : talk_say(round->plain->talk, json_pack("{s:b}", "over", 1));
  if (status == CLI_OK && !round->is_over_there) {
    status = talk_hear(round->plain->talk, "over", plan->patience_ns, &message);
  }
  json_decref(message);
  return status;
}

static int run_throughput(struct plain_round *round) {
  const struct plain_way *way = way_of(round->plain->plan);
  uint64_t now_ns = clock_now_ns();
  int status = CLI_OK;
  while (status == CLI_OK && !is_finished(round)) {
    bool has_moved = false;
    status = way->pass(round, now_ns - round->busy_ns >= SPIN_NS, &has_moved);
    round->busy_ns = has_moved ? now_ns : round->busy_ns;
    now_ns = clock_now_ns();
    gauge_look(round->gauge, now_ns);
    status = status == CLI_OK ? watch(round, now_ns) : status;
  }
  return status;
}

/* ---- latency ---- */

/* Of a timed one the client makes an end, between two messages; the server sees it in the flow. */
static int run_latency(struct plain_round *round) {
  struct plain *plain = round->plain;
  const struct plain_way *way = way_of(plain->plan);
  const struct counts *now = &round->gauge->now;
  uint64_t passes = 0;
  int status = CLI_OK;
  round->may_send = plain->is_client ? round->bytes : 0;
  for (;;) {
    bool is_between = now->bytes_sent == now->bytes_received && round->of_message == 0;
    bool may_end = plain->plan->is_timed ? plain->is_client || round->has_ended : true;
    if (status != CLI_OK || (is_between && may_end && is_finished(round))) {
      shutdown(plain->flows[0].fd, SHUT_WR);
      return status;
    }
    bool has_moved;
    if (round->to_send > 0 || round->to_receive > 0 || !is_between) {
      status = way->pass(round, false, &has_moved);
    }
    if (++passes % LOOK_EVERY_PASSES == 0 || !plain->plan->is_timed) {
      uint64_t now_ns = clock_now_ns();
      gauge_look(round->gauge, now_ns);
      status = status == CLI_OK ? watch(round, now_ns) : status;
    }
  }
}

int plain_run(struct plain *plain, uint64_t bytes, struct gauge *gauge, uint64_t *wrong) {
  const struct plan *plan = plain->plan;
  const struct plain_way *way = way_of(plan);
  bool is_latency = plan->test == PLAN_LATENCY, is_two_way = plan->test == PLAN_BOTH_WAYS;
  uint64_t all = plan->is_timed ? UINT64_MAX : (plan->warmup_count + plan->count) * bytes;
  struct plain_round round = { .plain = plain,
                               .gauge = gauge,
                               .bytes = bytes,
                               .is_latency = is_latency,
                               .moved_ns = clock_now_ns() };
  round.to_send = plain->is_client || is_two_way || is_latency ? all : 0;
  round.to_receive = !plain->is_client || is_two_way || is_latency ? all : 0;
  gauge_start(gauge, plan, is_latency || is_two_way ? 2 : 1);
  int status = way->open(&round);
  if (status == CLI_OK) {
    status = is_latency ? run_latency(&round) : run_throughput(&round);
  }
  way->close(&round);
  status = status == CLI_OK ? hear_over(&round) : status;
  *wrong += round.wrong;
  return status;
}
