/* SPDX-License-Identifier: Apache-2.0 */
/* See profiler_events.h. */
#include "net_plugin/observe/profiler_events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct profiler_communicator {
  bool is_open;
  struct profiler_progress progress; /* rank negative: not known yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct profiler_communicator communicators[PROFILER_COMMUNICATORS_MAX];

struct profiler_communicator *profiler_events_open(uint64_t communicator, int rank, int ranks) {
  struct profiler_communicator *found = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < PROFILER_COMMUNICATORS_MAX && !found; i++) {
    if (!communicators[i].is_open) {
      found = &communicators[i];
      *found = (struct profiler_communicator){ true, { communicator, rank, ranks, 0, 0, 0, "" } };
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void profiler_events_identify(struct profiler_communicator *communicator, uint64_t hash, int rank) {
  pthread_mutex_lock(&lock);
  communicator->progress.communicator = hash;
  communicator->progress.rank = rank;
  pthread_mutex_unlock(&lock);
}

void profiler_events_entered(struct profiler_communicator *communicator, const char *function,
                             uint64_t sequence, uint64_t now_ns) {
  struct profiler_progress *progress = &communicator->progress;
  size_t length = strnlen(function, PROFILER_FUNCTION_BYTES - 1);
  pthread_mutex_lock(&lock);
  progress->entered++;
  progress->sequence = sequence;
  progress->entered_ns = now_ns;
  memcpy(progress->function, function, length);
  progress->function[length] = '\0';
  pthread_mutex_unlock(&lock);
}

void profiler_events_close(struct profiler_communicator *communicator) {
  pthread_mutex_lock(&lock);
  communicator->is_open = false;
  pthread_mutex_unlock(&lock);
}

size_t profiler_events_read(struct profiler_progress list[PROFILER_COMMUNICATORS_MAX]) {
  size_t count = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < PROFILER_COMMUNICATORS_MAX; i++) {
    if (communicators[i].is_open && communicators[i].progress.rank >= 0) {
      list[count++] = communicators[i].progress;
    }
  }
  pthread_mutex_unlock(&lock);
  return count;
}

const char *profiler_events_describe(uint64_t now_ns, char text[PROFILER_TEXT_MAX]) {
  struct profiler_progress list[PROFILER_COMMUNICATORS_MAX], *newest = NULL;
  char ranks[24] = "";
  size_t count = profiler_events_read(list);
  for (size_t i = 0; i < count; i++) {
    if (list[i].entered && (!newest || list[i].entered_ns > newest->entered_ns)) {
      newest = &list[i];
    }
  }
  if (!newest) {
    text[0] = '\0';
    return text;
  }
  if (newest->ranks) {
    snprintf(ranks, sizeof ranks, " of %d", newest->ranks);
  }
  double seconds = now_ns > newest->entered_ns ? (double)(now_ns - newest->entered_ns) * 1e-9 : 0;
  snprintf(text, PROFILER_TEXT_MAX,
           ". This is rank %d%s, which entered %s %" PRIu64 " of communicator 0x%" PRIx64
           " %.1f s ago",
           newest->rank, ranks, newest->function, newest->sequence, newest->communicator, seconds);
  return text;
}
