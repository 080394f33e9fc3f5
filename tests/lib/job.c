/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "tests/lib/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/param.h"
#include "common/sysfs.h"
#include "net_plugin/setup/handle.h"
#include "tests/lib/content.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/pair.h"

enum { DEPTH = 4, MESSAGES = 16, LARGEST = 100000 };

/* Control only, eager, one chunk, several chunks on several flows. */
static const size_t sizes[] = { 8, 0, 5000, LARGEST, 30000, 66000, 1 };
enum { KINDS = sizeof sizes / sizeof *sizes };

static const struct net_v12 *const table = &ncclNetPlugin_v12;

struct side {
  void *comm, *memory;
  void *requests[DEPTH];
  uint64_t posted, done;
};

struct job {
  const struct job_options *options;
  struct outcome *outcome;
  void *context, *listener;
  struct side sender, receiver;
  uint64_t until_ns;
};

static uint8_t sent[DEPTH][LARGEST], received[DEPTH][LARGEST];

void job_set_parameters(const char *one, const char *other) {
  static char texts[2][128];
  snprintf(texts[0], sizeof texts[0], "%s", one ? one : "");
  snprintf(texts[1], sizeof texts[1], "%s", other ? other : "");
  char *environment[] = { texts[0], /* the first of a name counts */
                          texts[1],
                          "STRATUS_FLOWS=3",
                          "STRATUS_CHUNK_BYTES=32K",
                          "STRATUS_EAGER_BYTES=8K",
                          "STRATUS_LINK_TIMEOUT=60s",
                          "STRATUS_CONNECT_TIMEOUT=60s",
                          NULL };
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
  param_load(environment);
  sysfs_process_root = "/nonexistent";
}

void job_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                const char *format, ...) {
  char text[LOG_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log_capture_keep(level == NCCL_LOG_WARN   ? LOG_LEVEL_WARN
                   : level == NCCL_LOG_INFO ? LOG_LEVEL_INFO
                                            : LOG_LEVEL_TRACE,
                   text);
}

/* True while the job may go on; notes the first error. */
static bool goes_on(struct job *job, enum nccl_result result) {
  if (result != NCCL_SUCCESS && !job->outcome->error) {
    job->outcome->error = (int)result;
  }
  if (clock_now_ns() > job->until_ns) {
    job->outcome->problem = "hung";
  }
  return !job->outcome->error && !job->outcome->problem;
}

static bool start(struct job *job) {
  int count = 0;
  job->outcome->stage = "init";
  if (!goes_on(job, table->init(&job->context, 1, NULL, job_logger, NULL))) {
    return false;
  }
  job->outcome->stage = "devices";
  if (!goes_on(job, table->devices(&count)) ||
      !goes_on(job, count == 1 ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR)) {
    return false;
  }
  job->outcome->stage = "properties";
  struct net_properties_v12 properties;
  return goes_on(job, table->getProperties(0, &properties));
}

static bool connect_both(struct job *job) {
  uint8_t handle[HANDLE_BYTES];
  struct net_device_handle *none = NULL;
  job->outcome->stage = "listen";
  if (!goes_on(job, table->listen(job->context, 0, handle, &job->listener))) {
    return false;
  }
  job->outcome->stage = "connect";
  bool can_go_on = true;
  while (can_go_on && (!job->sender.comm || !job->receiver.comm)) {
    if (!job->sender.comm) {
      can_go_on = goes_on(job, table->connect(job->context, 0, handle, &job->sender.comm, &none));
    }
    if (can_go_on && !job->receiver.comm) {
      can_go_on = goes_on(job, table->accept(job->listener, &job->receiver.comm, &none));
    }
    usleep(20);
  }
  return can_go_on;
}

static bool register_memory(struct job *job) {
  job->outcome->stage = "regMr";
  return goes_on(job, table->regMr(job->sender.comm, sent, sizeof sent, NCCL_PTR_HOST,
                                   &job->sender.memory)) &&
         goes_on(job, table->regMr(job->receiver.comm, received, sizeof received, NCCL_PTR_HOST,
                                   &job->receiver.memory));
}

static enum nccl_result post(struct side *side, bool is_sender) {
  uint64_t n = side->posted;
  size_t bytes = sizes[n % KINDS];
  void *to = received[n % DEPTH], *phandle = NULL;
  int tag = 0;
  if (n == MESSAGES || n == side->done + DEPTH) {
    return NCCL_SUCCESS;
  }
  void **request = &side->requests[n % DEPTH];
  *request = NULL;
  enum nccl_result result;
  if (is_sender) {
    content_fill(n, sent[n % DEPTH], bytes);
    result = table->isend(side->comm, sent[n % DEPTH], bytes, tag, side->memory, phandle, request);
  } else {
    memset(to, 0, bytes);
    result = table->irecv(side->comm, 1, &to, &bytes, &tag, &side->memory, &phandle, request);
  }
  side->posted += result == NCCL_SUCCESS && *request;
  return result;
}

static enum nccl_result test_oldest(struct job *job, struct side *side, bool is_sender) {
  uint64_t n = side->done;
  int is_done = 0, bytes = 0;
  if (n == side->posted) {
    return NCCL_SUCCESS;
  }
  enum nccl_result result = table->test(side->requests[n % DEPTH], &is_done, &bytes);
  if (result == NCCL_SUCCESS && is_done) {
    size_t expected = sizes[n % KINDS];
    side->done++;
    if ((size_t)bytes != expected ||
        (!is_sender && content_differs(n, received[n % DEPTH], expected) < expected)) {
      job->outcome->problem = "wrong data";
    }
  }
  return result;
}

static void exchange(struct job *job) {
  uint64_t seen = 0;
  job->outcome->stage = "exchange";
  while (job->receiver.done < MESSAGES || job->sender.done < MESSAGES) {
    uint64_t before =
        job->receiver.posted + job->receiver.done + job->sender.posted + job->sender.done;
    if (!goes_on(job, post(&job->sender, true)) || !goes_on(job, post(&job->receiver, false)) ||
        !goes_on(job, test_oldest(job, &job->sender, true)) ||
        !goes_on(job, test_oldest(job, &job->receiver, false))) {
      return;
    }
    if (job->receiver.posted + job->receiver.done + job->sender.posted + job->sender.done ==
        before) {
      usleep(20);
    }
    if (job->options->cuts_flows && job->receiver.done != seen) {
      seen = job->receiver.done;
      if (seen == 4 || seen == 9) {
        pair_cut_flows(seen == 4 ? 3 : 0);
      }
    }
  }
  job->outcome->stage = "end";
}

/* What NCCL calls here succeeds, whatever was before. */
static void clean_up(struct job *job) {
  enum nccl_result result = NCCL_SUCCESS;
  if (job->sender.memory) {
    result |= table->deregMr(job->sender.comm, job->sender.memory);
  }
  if (job->receiver.memory) {
    result |= table->deregMr(job->receiver.comm, job->receiver.memory);
  }
  if (job->sender.comm) {
    result |= table->closeSend(job->sender.comm);
  }
  if (job->receiver.comm) {
    result |= table->closeRecv(job->receiver.comm);
  }
  if (job->listener) {
    result |= table->closeListen(job->listener);
  }
  if (job->context) {
    result |= table->finalize(job->context);
  }
  if (result != NCCL_SUCCESS) {
    job->outcome->problem = "deregMr, close or finalize fails";
  }
}

void job_run(const struct job_options *options, struct outcome *outcome) {
  struct job job = { .options = options, .outcome = outcome };
  *outcome = (struct outcome){ .stage = "start" };
  job.until_ns = clock_now_ns() + JOB_PATIENCE_NS;
  if (start(&job) && connect_both(&job) && register_memory(&job)) {
    if (options->connected) {
      options->connected();
    }
    exchange(&job);
  }
  clean_up(&job);
}
