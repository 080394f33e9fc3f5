/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the newest times of each collective and size, and the newest calls, and writes both to
 * files at close. */
#include "tuner_plugin/plugin/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/sample.h"
#include "common/topology.h"
#include "common/version.h"

/* CALLS_MAX: 192 KiB of calls. Two steps are needed to recognise one, so that one of 4096 calls
 * still is: 128 layers with the four AllReduces of tensor parallelism, in 8 micro-batches. */
enum { SERIES_MAX = 128, TIMES_MAX = 64, CALLS_MAX = 8192 };

/* The calls of one collective and size. */
struct series {
  int coll;
  uint64_t bytes;
  uint64_t calls; /* that have a time; 0: the place is free */
  uint8_t algorithm, protocol;
  uint16_t channels;
  uint32_t chunk; /* 0: NCCL's own */
  bool is_ours;
  float times_us[TIMES_MAX]; /* of the newest, in a ring */
};

struct call {
  uint64_t begin_ns, bytes;
  int coll;
};

struct record {
  pthread_mutex_t lock;
  struct tuner_host host;
  struct tuner_shape shape;
  char directory[PATH_MAX];
  struct series *current; /* of the newest call; NULL: that one is not recorded */
  uint64_t begin_ns;
  struct series series[SERIES_MAX]; /* in the order in which they came */
  size_t series_count;
  uint64_t call_count;
  struct call calls[CALLS_MAX]; /* the newest, in a ring */
};

struct record *record_open(const char *directory, struct tuner_host host,
                           struct tuner_shape shape) {
  bool is_wanted = directory[0] != '\0' && strlen(directory) < PATH_MAX - 300;
  bool is_even = shape.nodes > 0 && shape.ranks % shape.nodes == 0 && !shape.is_uneven;
  struct record *record = is_wanted && is_even ? calloc(1, sizeof *record) : NULL;
  if (record) {
    pthread_mutex_init(&record->lock, NULL);
    record->host = host;
    record->shape = shape;
    strcpy(record->directory, directory);
  }
  return record;
}

static void end_call(struct record *record, uint64_t now_ns) {
  struct series *series = record->current;
  if (series) {
    series->times_us[series->calls++ % TIMES_MAX] = (float)(now_ns - record->begin_ns) / 1000.0f;
  }
}

static void keep_call(struct record *record, int coll, uint64_t bytes, uint64_t now_ns) {
  if (coll >= 0 && coll < PROFILE_COLLECTIVE_COUNT) {
    record->calls[record->call_count++ % CALLS_MAX] =
        (struct call){ .begin_ns = now_ns, .bytes = bytes, .coll = coll };
  }
}

/* More sizes than there is room for are not recorded. */
static struct series *find_series(struct record *record, int coll, uint64_t bytes) {
  for (size_t i = 0; i < record->series_count; i++) {
    if (record->series[i].coll == coll && record->series[i].bytes == bytes) {
      return &record->series[i];
    }
  }
  if (record->series_count == SERIES_MAX || coll < 0 || coll >= PROFILE_COLLECTIVE_COUNT) {
    return NULL;
  }
  struct series *series = &record->series[record->series_count++];
  *series = (struct series){ .coll = coll, .bytes = bytes };
  return series;
}

/* The cell that NCCL will take. */
static bool take_cell(struct series *series, struct decide_costs costs) {
  struct costs_choice choice;
  if (!costs_choose(costs, &choice) || choice.cell == COSTS_UNKNOWN_CELL) {
    return false;
  }
  series->algorithm = (uint8_t)costs_cell_algorithm(choice.cell);
  series->protocol = (uint8_t)costs_cell_protocol(choice.cell);
  return true;
}

void record_call(struct record *record, int coll, size_t bytes, struct decide_costs costs,
                 int channels, bool is_ours) {
  uint64_t now_ns = clock_now_ns();
  pthread_mutex_lock(&record->lock);
  end_call(record, now_ns);
  keep_call(record, coll, bytes, now_ns);
  struct series *series = find_series(record, coll, bytes);
  if (series && take_cell(series, costs)) {
    series->channels = (uint16_t)(channels > 0 && channels <= PROFILE_CHANNELS_MAX ? channels : 0);
    series->chunk = 0; /* until NCCL asks for it */
    series->is_ours = is_ours;
    record->begin_ns = now_ns;
  } else {
    series = NULL;
  }
  record->current = series;
  pthread_mutex_unlock(&record->lock);
}

void record_chunk(struct record *record, uint32_t chunk) {
  pthread_mutex_lock(&record->lock);
  if (record->current) {
    record->current->chunk = chunk;
  }
  pthread_mutex_unlock(&record->lock);
}

/* ---- the end ---- */

static int compare_times(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static size_t format_series(const struct record *record, struct series *series,
                            const char *topology, char line[SAMPLE_LINE_MAX]) {
  size_t count = series->calls < TIMES_MAX ? (size_t)series->calls : TIMES_MAX;
  float apart[TIMES_MAX], *times = series->times_us;
  qsort(times, count, sizeof *times, compare_times);
  for (size_t i = 0; i < count; i++) {
    apart[i] = fabsf(times[i] - times[count / 2]);
  }
  qsort(apart, count, sizeof *apart, compare_times);
  struct sample sample = {
    .collective = (enum profile_collective)series->coll,
    .bytes = series->bytes,
    .nodes = (uint32_t)record->shape.nodes,
    .ppn = (uint32_t)(record->shape.ranks / record->shape.nodes),
    .algorithm = (enum profile_algorithm)series->algorithm,
    .protocol = (enum profile_protocol)series->protocol,
    .channels = series->channels,
    .chunk = series->chunk,
    .is_default = !series->is_ours,
    .n = (uint32_t)(series->calls < UINT32_MAX ? series->calls : UINT32_MAX),
    .median_us = (double)times[count / 2],
    .mad_us = (double)apart[count / 2],
    .p99_us = (double)times[count - 1],
    .time = (uint64_t)time(NULL),
    .nccl = record->host.nccl_version,
    .plugin = STRATUS_VERSION,
    .env = "recorded",
  };
  snprintf(sample.topology, sizeof sample.topology, "%s", topology);
  return sample_format(&sample, line, SAMPLE_LINE_MAX);
}

/* Other users may be able to write to the directory. A pipe of theirs must not block the end of the
 * job, and a link or file of theirs must not receive its samples. Not O_EXCL: the communicators of
 * a process share a file. */
static int open_own(const char *path) {
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int file = open(path, flags, 0600);
  struct stat found;
  if (file >= 0 && (fstat(file, &found) != 0 || !S_ISREG(found.st_mode) ||
                    found.st_uid != geteuid() || found.st_nlink != 1)) {
    close(file);
    errno = EPERM;
    return -1;
  }
  return file;
}

static int open_file(const struct record *record, const char *extension) {
  char path[PATH_MAX + 300], host[256] = "host";
  gethostname(host, sizeof host - 1);
  snprintf(path, sizeof path, "%s/%s.%d.%s", record->directory, host, (int)getpid(), extension);
  int file = open_own(path);
  static bool is_said; /* atomic */
  if (file < 0 && !__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED)) {
    LOG_WARN("STRATUS_RECORD: %s: %s; nothing is recorded", path, strerror(errno));
  }
  return file;
}

static void write_samples(struct record *record) {
  int file = -1;
  char topology[TOPOLOGY_ID_MAX] = "";
  if (record->series_count > 0) {
    topology_identify(topology);
  }
  for (size_t i = 0; i < record->series_count; i++) {
    char line[SAMPLE_LINE_MAX];
    size_t length =
        record->series[i].calls > 0 ? format_series(record, &record->series[i], topology, line) : 0;
    if (length == 0) {
      continue;
    }
    if (file < 0 && (file = open_file(record, "jsonl")) < 0) {
      break;
    }
    /* Whole lines; if the disk is full, the last one is incomplete, and readers skip it. */
    if (write(file, line, length) != (ssize_t)length) {
      break;
    }
  }
  if (file >= 0) {
    close(file);
  }
}

static void format_calls(const struct record *record, FILE *text) {
  uint64_t dropped = record->call_count > CALLS_MAX ? record->call_count - CALLS_MAX : 0;
  fprintf(text,
          "{\"format\":\"stratus-calls\",\"version\":1,\"ranks\":%zu,\"nodes\":%zu,\"nccl\":%d,"
          "\"dropped\":%" PRIu64 ",\"calls\":[",
          record->shape.ranks, record->shape.nodes, record->host.nccl_version, dropped);
  for (uint64_t i = dropped; i < record->call_count; i++) {
    const struct call *call = &record->calls[i % CALLS_MAX];
    fprintf(text, "%s[%" PRIu64 ".%03u,\"%s\",%" PRIu64 "]", i > dropped ? "," : "",
            call->begin_ns / 1000, (unsigned)(call->begin_ns % 1000),
            profile_collective_name((enum profile_collective)call->coll), call->bytes);
  }
  fputs("]}\n", text);
}

/* In one write: communicators of the process may be closed at the same time, by several threads. */
static void write_calls(const struct record *record) {
  char *line = NULL;
  size_t length = 0;
  FILE *text = record->call_count > 0 ? open_memstream(&line, &length) : NULL;
  if (!text) {
    return;
  }
  format_calls(record, text);
  int file = fclose(text) == 0 ? open_file(record, "calls") : -1;
  if (file >= 0) {
    /* If the disk is full the line is incomplete; readers say so. */
    ssize_t written = write(file, line, length);
    (void)written;
    close(file);
  }
  free(line);
}

void record_close(struct record *record) {
  if (!record) {
    return;
  }
  write_samples(record);
  write_calls(record);
  pthread_mutex_destroy(&record->lock);
  free(record);
}
