/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "tests/lib/job.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/param.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/plugin/transfer.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/listener.h"
#include "tests/lib/content.h"

enum { DEPTH = 4, MESSAGES = 16, LARGEST = 100000 };

/* Control only, eager, one chunk, several chunks on several flows. */
static const size_t sizes[] = { 8, 0, 5000, LARGEST, 30000, 66000, 1 };
enum { KINDS = sizeof sizes / sizeof *sizes };

struct side {
  struct connection *connection;
  struct request *requests[DEPTH];
  uint64_t posted, done;
};

struct job {
  const struct job_options *options;
  struct job_result *result;
  struct plugin_context *context;
  struct listener *listener;
  struct side sender, receiver;
  uint64_t until_ns;
};

static uint8_t sent[DEPTH][LARGEST], received[DEPTH][LARGEST];

void job_set_parameters(const char *progress) {
  static char variable[64];
  snprintf(variable, sizeof variable, "STRATUS_PROGRESS=%s", progress);
  char *environment[] = { variable,
                          "STRATUS_FLOWS=3",
                          "STRATUS_CHUNK_BYTES=32K",
                          "STRATUS_EAGER_BYTES=8K",
                          "STRATUS_LINK_TIMEOUT=60s",
                          "STRATUS_CONNECT_TIMEOUT=60s",
                          "STRATUS_SYSFS_ROOT=/nonexistent",
                          NULL };
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
  param_load(environment);
}

unsigned job_descriptors(void) {
  DIR *directory = opendir("/proc/self/fd");
  unsigned count = 0;
  while (readdir(directory)) {
    count++;
  }
  closedir(directory);
  return count;
}

/* Cuts TCP connections of this process; every keep-th stays, with 0 none. */
static void cut_flows(unsigned keep) {
  for (int fd = 3; fd < 256; fd++) {
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.ss_family == AF_INET &&
        (!keep || (unsigned)fd % keep)) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

/* True while the job may go on; notes the first error. */
static bool goes_on(struct job *job, int error) {
  if (error && !job->result->error) {
    job->result->error = error;
  }
  if (clock_now_ns() > job->until_ns) {
    job->result->is_hung = true;
  }
  return !job->result->error && !job->result->is_hung;
}

static bool start(struct job *job) {
  struct plugin_host host = { .api_version = 11, .traffic_class = PLUGIN_TRAFFIC_CLASS_NONE };
  int count = 0;
  job->result->stage = "init";
  if (!goes_on(job, plugin_init(&host, &job->context))) {
    return false;
  }
  job->result->stage = "devices";
  if (!goes_on(job, plugin_device_count(&count)) || !goes_on(job, count == 1 ? 0 : -ENODEV)) {
    return false;
  }
  struct net_properties properties;
  return goes_on(job, plugin_device_properties(0, &properties));
}

static bool connect_both(struct job *job) {
  uint8_t handle[HANDLE_BYTES];
  job->result->stage = "listen";
  if (!goes_on(job, plugin_listen(job->context, 0, handle, &job->listener))) {
    return false;
  }
  job->result->stage = "connect";
  bool can_go_on = true;
  while (can_go_on && (!job->sender.connection || !job->receiver.connection)) {
    if (!job->sender.connection) {
      can_go_on = goes_on(job, plugin_connect(job->context, 0, PLUGIN_TRAFFIC_CLASS_NONE, 0, handle,
                                              &job->sender.connection));
    }
    if (can_go_on && !job->receiver.connection) {
      can_go_on = goes_on(job, listener_accept(job->listener, &job->receiver.connection));
    }
    usleep(20);
  }
  return can_go_on;
}

static int post(struct side *side, bool is_sender) {
  uint64_t n = side->posted;
  size_t bytes = sizes[n % KINDS];
  void *to = received[n % DEPTH], *none = NULL;
  if (n == MESSAGES || n == side->done + DEPTH) {
    return 0;
  }
  struct request **request = &side->requests[n % DEPTH];
  int error;
  if (is_sender) {
    content_fill(n, sent[n % DEPTH], bytes);
    error = plugin_isend(side->connection, sent[n % DEPTH], bytes, NULL, NULL, request);
  } else {
    memset(to, 0, bytes);
    error = plugin_irecv(side->connection, 1, &to, &bytes, NULL, &none, request);
  }
  side->posted += !error && *request;
  return error;
}

static int test_oldest(struct job *job, struct side *side, bool is_sender) {
  uint64_t n = side->done;
  bool is_done = false;
  size_t bytes = 0;
  if (n == side->posted) {
    return 0;
  }
  int error = transfer_test(side->requests[n % DEPTH], &is_done, &bytes);
  if (!error && is_done) {
    side->done++;
    job->result->is_wrong |= bytes != sizes[n % KINDS];
    job->result->is_wrong |=
        !is_sender && content_differs(n, received[n % DEPTH], sizes[n % KINDS]) < sizes[n % KINDS];
  }
  return error;
}

static void exchange(struct job *job) {
  uint64_t seen = 0;
  job->result->stage = "exchange";
  while (job->receiver.done < MESSAGES || job->sender.done < MESSAGES) {
    if (!goes_on(job, post(&job->sender, true)) || !goes_on(job, post(&job->receiver, false)) ||
        !goes_on(job, test_oldest(job, &job->sender, true)) ||
        !goes_on(job, test_oldest(job, &job->receiver, false))) {
      return;
    }
    if (job->options->cuts_flows && job->receiver.done != seen) {
      seen = job->receiver.done;
      if (seen == 4 || seen == 9) {
        cut_flows(seen == 4 ? 3 : 0);
      }
    }
  }
  job->result->stage = "end";
}

static void clean_up(struct job *job) {
  if (job->sender.connection) {
    transfer_close(job->sender.connection);
  }
  if (job->receiver.connection) {
    transfer_close(job->receiver.connection);
  }
  if (job->listener) {
    listener_close(job->listener);
  }
  if (job->context) {
    plugin_finalize(job->context);
  }
}

void job_run(const struct job_options *options, struct job_result *result) {
  struct job job = { .options = options, .result = result };
  *result = (struct job_result){ .stage = "start" };
  job.until_ns = clock_now_ns() + JOB_PATIENCE_NS;
  if (start(&job) && connect_both(&job)) {
    if (options->connected) {
      options->connected();
    }
    exchange(&job);
  }
  clean_up(&job);
}
