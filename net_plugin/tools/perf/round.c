/* SPDX-License-Identifier: Apache-2.0 */
/* One round, driven as NCCL's progress thread does.
 *
 * A round of --count ends when every stream has completed its messages. In a timed round the number
 * is not known in advance, and all posted receives must complete before the next round. Each side
 * sends "over" when its window is over. After that:
 *
 *   1. The sender stops posting at message P and sends "last" = P + depth.
 *   2. The receiver posts receives up to "last" and no more (it is at most `depth` ahead of P), and
 *      sends "go".
 *   3. The sender sends messages up to "last".
 *
 * In a latency test the client's streams decide, and the server responds to each message. */
#include <sched.h>

#include "common/cli.h"
#include "common/clock.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/perf/driver.h"
#include "net_plugin/tools/perf/pattern.h"

struct round {
  struct driver *driver;
  struct window *window;
  uint64_t bytes, wrong;
  bool decides; /* sends "last" */
  bool is_over_sent, is_peer_over, is_last_sent, may_go;
  uint64_t polled_ns;                   /* the control channel */
  uint64_t moved_ns, moved_completions; /* the last completion */
};

/* ---- one stream ---- */

static uint8_t *slot_of(const struct round *round, const struct stream *stream, uint64_t message) {
  const struct driver *driver = round->driver;
  return stream->memory + message % PLAN_DEPTH * driver->slot_stride;
}

static bool may_post(const struct round *round, const struct stream *stream) {
  if (stream->posted >= stream->total || stream->posted >= stream->done + PLAN_DEPTH) {
    return false;
  }
  if (!stream->is_sender) {
    return true;
  }
  bool is_frozen = round->is_last_sent && !round->may_go;
  bool is_turn = !stream->partner || stream->posted < stream->partner->done + stream->is_first;
  return is_turn && !is_frozen;
}

static int post(struct round *round, struct stream *stream, bool *has_moved) {
  const struct driver *driver = round->driver;
  uint8_t *slot = slot_of(round, stream, stream->posted);
  void **request = &stream->requests[stream->posted % PLAN_DEPTH];
  const struct net_v11 *table = driver->table;
  enum nccl_result result;
  *request = NULL;
  if (stream->is_sender) {
    if (driver->plan.is_checked) {
      void (*write)(uint8_t *, size_t, uint64_t) =
          driver->plan.has_data ? pattern_seal : pattern_fill;
      write(slot, round->bytes, pattern_seed(stream->number, stream->posted));
    }
    if (stream->is_first) {
      stream->posted_ns = clock_now_ns();
    }
    result = table->isend(stream->comm, slot, round->bytes, 0, stream->mhandle, NULL, request);
  } else {
    void *data = slot, *no_phandle = NULL;
    size_t bytes = driver->plan.largest;
    int tag = 0;
    result =
        table->irecv(stream->comm, 1, &data, &bytes, &tag, &stream->mhandle, &no_phandle, request);
  }
  stream->posted += *request != NULL;
  *has_moved |= *request != NULL;
  return result ? driver_fail_call(driver, stream->is_sender ? "isend" : "irecv", result) : CLI_OK;
}

static int note_received(struct round *round, struct stream *stream, int bytes) {
  const struct driver *driver = round->driver;
  if (bytes < 0 || (uint64_t)bytes != round->bytes) {
    return cli_fail("message %llu of connection %u has %d bytes; %llu were sent",
                    (unsigned long long)stream->done, stream->number, bytes,
                    (unsigned long long)round->bytes);
  }
  if (driver->plan.is_checked) {
    bool (*is_right)(const uint8_t *, size_t, uint64_t) =
        driver->plan.has_data ? pattern_seal_matches : pattern_matches;
    round->wrong += !is_right(slot_of(round, stream, stream->done), round->bytes,
                              pattern_seed(stream->number, stream->done));
  }
  round->window->now.messages_received++;
  round->window->now.bytes_received += round->bytes;
  if (stream->partner && stream->partner->is_first && round->window->state == WINDOW_MEASURING) {
    window_add_half_trip(round->window, (clock_now_ns() - stream->partner->posted_ns) / 2);
  }
  return CLI_OK;
}

static int test_oldest(struct round *round, struct stream *stream, bool *has_moved) {
  const struct driver *driver = round->driver;
  int is_done = 0, bytes = 0;
  void *request = stream->requests[stream->done % PLAN_DEPTH];
  enum nccl_result result = driver->table->test(request, &is_done, &bytes);
  if (result) {
    return driver_fail_call(driver, "test", result);
  }
  int status = CLI_OK;
  if (is_done) {
    *has_moved = true;
    if (stream->is_sender) {
      round->window->now.messages_sent++;
      round->window->now.bytes_sent += round->bytes;
    } else {
      status = note_received(round, stream, bytes);
    }
    stream->done++;
  }
  return status;
}

/* At most one of each per pass, as in NCCL's sendProxyProgress and recvProxyProgress. */
static int progress(struct round *round, struct stream *stream, bool *has_moved) {
  int status = may_post(round, stream) ? post(round, stream, has_moved) : CLI_OK;
  return status == CLI_OK && stream->done < stream->posted ? test_oldest(round, stream, has_moved)
                                                           : status;
}

/* ---- the end of a timed round ---- */

static int send_last(struct round *round) {
  struct driver *driver = round->driver;
  json_t *list = json_array();
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    if (stream->is_sender) {
      stream->total = stream->posted + PLAN_DEPTH;
      if (stream->partner) {
        stream->partner->total = stream->total;
      }
      json_array_append_new(list, json_integer((json_int_t)stream->total));
    }
  }
  round->is_last_sent = true;
  return control_channel_send(&driver->channel, json_pack("{s:o}", "last", list));
}

static int take_last(struct round *round, const json_t *list) {
  struct driver *driver = round->driver;
  size_t next = 0;
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    if (!stream->is_sender) {
      const json_t *number = json_array_get(list, next++);
      uint64_t total = (uint64_t)json_integer_value(number);
      if (!json_is_integer(number) || total < stream->posted) {
        return cli_fail("%s expects another number of messages", driver->channel.peer);
      }
      stream->total = total;
      if (stream->partner) {
        stream->partner->total = total;
      }
    }
  }
  return control_channel_send(&driver->channel, json_pack("{s:b}", "go", 1));
}

static int handle_message(struct round *round, json_t *message) {
  const json_t *last = json_object_get(message, "last");
  int status = CLI_OK;
  if (json_object_get(message, "over")) {
    round->is_peer_over = true;
  } else if (json_object_get(message, "go")) {
    round->may_go = true;
  } else if (last) {
    status = take_last(round, last);
  } else {
    control_channel_keep(&round->driver->channel, json_incref(message));
  }
  json_decref(message);
  return status;
}

static int settle(struct round *round) {
  int status = CLI_OK;
  if (!round->driver->plan.count && round->window->state == WINDOW_OVER) {
    if (!round->is_over_sent) {
      round->is_over_sent = true;
      status = control_channel_send(&round->driver->channel, json_pack("{s:b}", "over", 1));
    }
    if (status == CLI_OK && round->is_peer_over && round->decides && !round->is_last_sent) {
      status = send_last(round);
    }
  }
  return status;
}

/* ---- all of them ---- */

static bool is_finished(const struct round *round) {
  const struct driver *driver = round->driver;
  for (int i = 0; i < driver->stream_count; i++) {
    if (driver->streams[i].done < driver->streams[i].total) {
      return false;
    }
  }
  return true;
}

/* Checks for progress and handles messages of the other side. */
static int watch(struct round *round, uint64_t now_ns) {
  const struct counts *now = &round->window->now;
  uint64_t completions = now->messages_sent + now->messages_received;
  if (completions != round->moved_completions) {
    round->moved_completions = completions;
    round->moved_ns = now_ns;
  }
  if (now_ns - round->moved_ns > round->driver->plan.timeout_ns) {
    return cli_fail("nothing has moved for %.0f s", (double)(now_ns - round->moved_ns) * 1e-9);
  }
  if (now_ns - round->polled_ns < PERF_POLL_EVERY_NS) {
    return CLI_OK;
  }
  round->polled_ns = now_ns;
  json_t *message;
  int status = control_channel_poll(&round->driver->channel, &message);
  return status == CLI_OK && message ? handle_message(round, message) : status;
}

static int run(struct round *round) {
  const struct driver *driver = round->driver;
  unsigned passes = 0;
  for (;;) {
    bool has_moved = false;
    for (int i = 0; i < driver->stream_count; i++) {
      int status = progress(round, &driver->streams[i], &has_moved);
      if (status != CLI_OK) {
        return status;
      }
    }
    if (++passes % PERF_CLOCK_EVERY_PASSES == 0 || (driver->plan.count && has_moved)) {
      uint64_t now_ns = clock_now_ns();
      window_update(round->window, now_ns);
      int status = watch(round, now_ns);
      status = status ? status : settle(round);
      if (status != CLI_OK || (round->window->state == WINDOW_OVER && is_finished(round))) {
        return status;
      }
    }
    if (!has_moved) {
      sched_yield();
    }
  }
}

int driver_run(struct driver *driver, uint64_t bytes, struct window *window, uint64_t *wrong) {
  const struct plan *plan = &driver->plan;
  struct round round = { .driver = driver, .window = window, .bytes = bytes };
  for (int i = 0; i < driver->stream_count; i++) {
    struct stream *stream = &driver->streams[i];
    stream->posted = stream->done = 0;
    stream->total = plan->count ? plan_warmup_count(plan) + plan->count : DRIVER_TOTAL_UNKNOWN;
  }
  round.decides = driver->is_client || plan->test == PLAN_BOTH_WAYS;
  round.moved_ns = clock_now_ns();
  window_start(window, plan, driver->stream_count);
  int status = run(&round);
  *wrong = round.wrong;
  return status;
}
