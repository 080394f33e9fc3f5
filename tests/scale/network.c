/* SPDX-License-Identifier: Apache-2.0 */
/* See network.h. */
#include "tests/scale/network.h"

#include <stdio.h>
#include <stdlib.h>

#define NS_PER_S 1000000000ull

static uint64_t time_of(uint64_t bytes, uint64_t rate) {
  return rate > 0 ? (bytes * NS_PER_S + rate - 1) / rate : 0;
}

static uint64_t later(uint64_t a_ns, uint64_t b_ns) {
  return a_ns > b_ns ? a_ns : b_ns;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns) {
  return a_ns < b_ns ? a_ns : b_ns;
}

/* ---- token buckets ---- */

static struct bucket bucket_make(uint64_t rate, uint32_t burst_bytes) {
  return (struct bucket){ .rate = rate, .burst_ns = time_of(burst_bytes, rate) };
}

/* A segment may leave as long as there is any token. */
static uint64_t bucket_ready_ns(const struct bucket *bucket) {
  return bucket->full_ns > bucket->burst_ns ? bucket->full_ns - bucket->burst_ns : 0;
}

static void bucket_take(struct bucket *bucket, uint64_t bytes, uint64_t now_ns) {
  bucket->full_ns = later(bucket->full_ns, now_ns) + time_of(bytes, bucket->rate);
}

static uint64_t path_ready_ns(const struct path *path) {
  return later(bucket_ready_ns(&path->bucket), bucket_ready_ns(&path->nic->bucket));
}

/* ---- turns ---- */

static void nic_wait(struct nic_out *nic, struct path *path) {
  path->is_waiting = true;
  TAILQ_INSERT_TAIL(&nic->waiting, path, next);
}

static void nic_leave(struct nic_out *nic, struct path *path) {
  path->is_waiting = false;
  TAILQ_REMOVE(&nic->waiting, path, next);
}

static void path_wait(struct path *path, struct stream *stream) {
  stream->is_waiting = true;
  TAILQ_INSERT_TAIL(&path->waiting, stream, next);
}

static void path_leave(struct path *path, struct stream *stream) {
  stream->is_waiting = false;
  TAILQ_REMOVE(&path->waiting, stream, next);
}

/* ---- sending ---- */

static void nic_serve(void *owner, uint64_t number);

static void nic_wake(struct nic_out *nic, uint64_t at_ns) {
  if (at_ns < nic->wake_ns) {
    nic->wake_ns = at_ns;
    events_add(nic->network->events, at_ns, nic_serve, nic, ++nic->wake_number);
  }
}

#define APP_LIMITED (1u << 31)

/* argument: the stream's epoch, whether nothing more was queued, and bytes. */
static void segment_arrives(void *owner, uint64_t argument) {
  struct stream *stream = owner;
  if (stream->epoch != argument >> 32) {
    return;
  }
  stream->is_app_limited = (argument & APP_LIMITED) != 0;
  stream->arrived_bytes += (uint32_t)argument & ~APP_LIMITED;
  if (stream->arrived_bytes == stream->written_bytes) {
    stream->busy_ns += stream->path->nic->network->events->now_ns - stream->busy_since_ns;
  }
  stream->arrived(stream);
}

static void send_segment(struct nic_out *nic, struct path *path, struct stream *stream) {
  struct network *network = nic->network;
  uint64_t now_ns = network->events->now_ns, bytes = stream->queued_bytes;
  bytes = bytes < NETWORK_SEGMENT_BYTES ? bytes : NETWORK_SEGMENT_BYTES;
  bucket_take(&path->bucket, bytes, now_ns);
  bucket_take(&nic->bucket, bytes, now_ns);
  nic->ready_ns = now_ns + time_of(bytes, network->config.wire_rate);
  nic->sent_bytes += bytes;
  stream->queued_bytes -= bytes;
  nic_leave(nic, path);
  path_leave(path, stream);
  if (stream->queued_bytes > 0) {
    path_wait(path, stream);
  }
  if (!TAILQ_EMPTY(&path->waiting)) {
    nic_wait(nic, path);
  }
  events_add(network->events, nic->ready_ns + network->config.latency_ns, segment_arrives, stream,
             (uint64_t)stream->epoch << 32 | (stream->queued_bytes > 0 ? 0 : APP_LIMITED) | bytes);
}

static struct path *next_path(struct nic_out *nic) {
  struct path *path = TAILQ_FIRST(&nic->waiting);
  while (path && path_ready_ns(path) > nic->network->events->now_ns) {
    path = TAILQ_NEXT(path, next);
  }
  return path;
}

static void nic_serve(void *owner, uint64_t number) {
  struct nic_out *nic = owner;
  if (number != nic->wake_number || nic->is_down) {
    return;
  }
  nic->wake_ns = EVENTS_NEVER;
  if (nic->ready_ns > nic->network->events->now_ns) {
    nic_wake(nic, nic->ready_ns);
    return;
  }
  struct path *next = next_path(nic);
  if (next) {
    struct stream *stream = TAILQ_FIRST(&next->waiting);
    send_segment(nic, next, stream);
    nic_wake(nic, TAILQ_EMPTY(&nic->waiting) ? EVENTS_NEVER : nic->ready_ns);
    stream->departed(stream);
    return;
  }
  uint64_t earliest_ns = EVENTS_NEVER;
  TAILQ_FOREACH(next, &nic->waiting, next) {
    earliest_ns = sooner(earliest_ns, path_ready_ns(next));
  }
  nic_wake(nic, earliest_ns);
}

/* ---- streams ---- */

void network_open(struct network *network, struct stream *stream, unsigned nic, unsigned path) {
  stream->path = &network->nics[nic].paths[path];
  stream->queued_bytes = stream->written_bytes = stream->arrived_bytes = 0;
  stream->busy_ns = 0;
  stream->is_app_limited = false;
}

void network_close(struct stream *stream) {
  struct path *path = stream->path;
  if (path && stream->is_waiting) {
    path_leave(path, stream);
    if (TAILQ_EMPTY(&path->waiting)) {
      nic_leave(path->nic, path);
    }
  }
  stream->path = NULL;
  stream->queued_bytes = 0;
  stream->epoch++;
}

void network_write(struct stream *stream, uint64_t bytes) {
  struct path *path = stream->path;
  if (bytes > 0 && stream->arrived_bytes == stream->written_bytes) {
    stream->busy_since_ns = path->nic->network->events->now_ns;
  }
  stream->queued_bytes += bytes;
  stream->written_bytes += bytes;
  if (bytes == 0 || stream->is_waiting) {
    return;
  }
  path_wait(path, stream);
  if (!path->is_waiting) {
    nic_wait(path->nic, path);
  }
  if (!path->nic->is_down) {
    uint64_t ready_ns = later(path->nic->ready_ns, path_ready_ns(path));
    nic_wake(path->nic, later(ready_ns, path->nic->network->events->now_ns));
  }
}

uint64_t network_busy_ns(const struct stream *stream) {
  bool is_busy = stream->arrived_bytes < stream->written_bytes;
  uint64_t now_ns = stream->path->nic->network->events->now_ns;
  return stream->busy_ns + (is_busy ? now_ns - stream->busy_since_ns : 0);
}

void network_set_down(struct network *network, unsigned nic) {
  struct nic_out *changed = &network->nics[nic];
  changed->is_down = true;
  changed->wake_ns = EVENTS_NEVER;
  changed->wake_number++;
}

void network_init(struct network *network, const struct network_config *config,
                  struct events *events) {
  *network = (struct network){ .config = *config, .events = events };
  for (unsigned i = 0; i < config->nics; i++) {
    struct nic_out *nic = &network->nics[i];
    nic->network = network;
    nic->wake_ns = EVENTS_NEVER;
    TAILQ_INIT(&nic->waiting);
    nic->bucket = bucket_make(config->nic_rate, config->burst_bytes);
    nic->paths = calloc(config->paths, sizeof *nic->paths);
    if (!nic->paths) {
      perror("scale");
      exit(1);
    }
    for (unsigned p = 0; p < config->paths; p++) {
      nic->paths[p].nic = nic;
      TAILQ_INIT(&nic->paths[p].waiting);
      nic->paths[p].bucket = bucket_make(config->flow_rate, config->burst_bytes);
    }
  }
}

void network_free(struct network *network) {
  for (unsigned i = 0; i < network->config.nics; i++) {
    free(network->nics[i].paths);
  }
}
