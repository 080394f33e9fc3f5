/* SPDX-License-Identifier: Apache-2.0 */
/* See results.h. Disjoint pairs measure at the same time: each host sends or receives at most one
 * measurement. Every rank computes the same pairs from the same results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/hex.h"
#include "common/plain.h"
#include "net_plugin/plugin/discovery.h"
#include "net_plugin/setup/settings.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/load.h"
#include "net_plugin/tools/probe/ranks.h"

static struct discovery found; /* too large for the stack */

struct survey {
  struct ranks *ranks;
  uint64_t duration_ns; /* of a measurement */
  struct probe_report *report;
};

/* ---- hosts ---- */

static json_t *describe_host(void) {
  json_t *devices = json_array();
  for (int i = 0; i < found.devices.count && i < PROBE_DEVICES_MAX; i++) {
    const struct device *device = &found.devices.devices[i];
    json_array_append_new(devices, json_pack("{s:s, s:i}", "name", device->name, "numa_node",
                                             device->nics[0].numa_node));
  }
  return json_pack("{s:s, s:o}", "host", settings_identity()->host, "devices", devices);
}

static void take_name(const json_t *object, const char *key, char name[PROBE_NAME_MAX]) {
  const char *text = json_string_value(json_object_get(object, key));
  snprintf(name, PROBE_NAME_MAX, "%s", text ? text : "?");
  plain_text(name);
}

static int take_host(const json_t *from, struct probe_host *host) {
  const json_t *devices = json_object_get(from, "devices");
  take_name(from, "host", host->name);
  for (size_t i = 0; i < json_array_size(devices) && i < PROBE_DEVICES_MAX; i++) {
    const json_t *it = json_array_get(devices, i);
    struct probe_device *device = &host->devices[host->device_count++];
    device->numa_node = (int)json_integer_value(json_object_get(it, "numa_node"));
    take_name(it, "name", device->name);
  }
  return host->device_count ? CLI_OK : cli_fail("%s has no usable interface", host->name);
}

/* Ranks of hosts with equal names are distinguished by their place. */
static void make_unique(struct probe_host *hosts, unsigned place) {
  for (unsigned i = 0; i < place; i++) {
    if (strcmp(hosts[i].name, hosts[place].name) == 0) {
      size_t length = strnlen(hosts[place].name, PROBE_NAME_MAX - 8);
      snprintf(hosts[place].name + length, PROBE_NAME_MAX - length, "#%u", place);
      return;
    }
  }
}

/* What of each host the report has. */
static int meet(struct ranks *ranks, struct probe_report *report) {
  json_t *all;
  int status = ranks_gather(ranks, describe_host(), &all);
  report->host_count = ranks->count;
  report->device_count = PROBE_DEVICES_MAX;
  for (unsigned i = 0; i < ranks->count && status == CLI_OK; i++) {
    struct probe_host *host = &report->hosts[i];
    status = take_host(json_array_get(all, i), host);
    make_unique(report->hosts, i);
    report->device_count =
        host->device_count < report->device_count ? host->device_count : report->device_count;
  }
  json_decref(all);
  for (unsigned i = ranks->own > 0 ? 0 : 1; i < (ranks->own > 0 ? 1 : ranks->count); i++) {
    ranks->channels[i].peer = report->hosts[i].name;
  }
  report->results =
      calloc((size_t)report->device_count * ranks->count * ranks->count, sizeof *report->results);
  return status != CLI_OK || report->results ? status : cli_fail("out of memory");
}

/* ---- one measurement ---- */

struct pair {
  unsigned device, from, to;
};

/* The receiver: the handle, or why there is none. */
static json_t *offer(const struct pair *pair, struct load_service *service, bool *is_offered) {
  char handle[2 * HANDLE_BYTES + 1];
  int error = load_offer(&found.devices.devices[pair->device], service);
  *is_offered = error == 0;
  if (error) {
    return json_integer(error);
  }
  hex_write(service->handle, HANDLE_BYTES, handle);
  return json_string(handle);
}

static void fail_pair(struct probe_result *result, const char *where, int error) {
  char why[PROBE_ERROR_MAX]; /* what load_send has said of it */
  snprintf(why, sizeof why, "%s", result->error[0] ? result->error : strerror(-error));
  snprintf(result->error, PROBE_ERROR_MAX, "%s: %.150s", where, why);
}

static void note_black_hole(struct probe_result *result) {
  result->is_black_hole = true;
  snprintf(result->error, PROBE_ERROR_MAX,
           "short packets pass, long ones do not (the NIC's MTU is %u): something on the way takes "
           "less and does not say so. Lower the MTU of both NICs, or mend the path",
           result->mtu);
}

/* A sender's part. */
struct sending {
  int fd; /* negative: it is not connected, and the result says why */
  uint8_t handle[HANDLE_BYTES];
  struct probe_result result;
};

/* The sender: whether it has reached what was offered. The receiver waits for nobody else. */
static json_t *dial(const struct pair *pair, const json_t *offered, struct sending *sending) {
  const char *text = json_string_value(offered);
  if (!text || !hex_read(text, sending->handle, HANDLE_BYTES)) {
    fail_pair(&sending->result, "cannot listen", (int)json_integer_value(offered));
    return json_false();
  }
  sending->fd = load_dial(&found.devices.devices[pair->device], sending->handle, &sending->result);
  if (sending->fd < 0) {
    fail_pair(&sending->result, "cannot send", sending->fd);
  }
  return json_boolean(sending->fd >= 0);
}

/* The sender: its result. */
static json_t *send_to(struct sending *sending, const struct probe_load *load) {
  struct probe_result *result = &sending->result;
  if (sending->fd >= 0) {
    int error = load_send(sending->fd, sending->handle, load, result);
    result->is_measured = error == 0;
    if (error == -EMSGSIZE) {
      note_black_hole(result);
    } else if (error) {
      fail_pair(result, "cannot send", error);
    }
  }
  return json_pack("{s:b, s:b, s:s, s:f, s:f, s:i}", "measured", result->is_measured, "black_hole",
                   result->is_black_hole, "error", result->error, "gbps", result->gbps, "rtt_us",
                   result->rtt_us, "mtu", (int)result->mtu);
}

/* What is of another type ends the reading: the rest is 0. */
static void take_result(const json_t *from, struct probe_result *result) {
  int is_measured = 0, is_black_hole = 0, mtu = 0;
  const char *error = "no result";
  *result = (struct probe_result){ 0 };
  json_unpack((json_t *)(uintptr_t)from, "{s:b, s:b, s:s, s:F, s:F, s:i}", "measured", &is_measured,
              "black_hole", &is_black_hole, "error", &error, "gbps", &result->gbps, "rtt_us",
              &result->rtt_us, "mtu", &mtu);
  result->is_measured = is_measured;
  result->is_black_hole = is_black_hole;
  result->mtu = (unsigned)mtu;
  snprintf(result->error, PROBE_ERROR_MAX, "%s", error);
  plain_text(result->error);
}

/* What each says now, in the place of what each has said before. Takes the reference to `mine`. */
static int tell_all(const struct survey *survey, json_t *mine, json_t **all) {
  json_decref(*all);
  return ranks_gather(survey->ranks, mine, all);
}

/* Pairs that can run together: at most one per host. results: one for each. */
static int measure_pairs(const struct survey *survey, const struct pair *pairs, unsigned count,
                         struct probe_result *results) {
  unsigned own = survey->ranks->own;
  const struct pair *mine = NULL; /* of which this host is an end */
  for (unsigned i = 0; i < count; i++) {
    mine = pairs[i].from == own || pairs[i].to == own ? &pairs[i] : mine;
  }
  bool is_sender = mine && mine->from == own, is_offered = false;
  struct probe_load load = { survey->duration_ns, mine ? mine->device : 0 };
  struct load_service service;
  struct sending sending = { .fd = -1 };
  json_t *all = NULL;
  int status =
      tell_all(survey, mine && !is_sender ? offer(mine, &service, &is_offered) : json_null(), &all);
  if (status == CLI_OK) {
    status = tell_all(survey,
                      is_sender ? dial(mine, json_array_get(all, mine->to), &sending) : json_null(),
                      &all);
  }
  if (status == CLI_OK && is_offered && json_is_true(json_array_get(all, mine->from))) {
    load_serve(&service, &load);
  } else if (is_offered) {
    peer_listener_close(&service.listener);
  }
  if (status == CLI_OK) {
    status = tell_all(survey, is_sender ? send_to(&sending, &load) : json_null(), &all);
  }
  for (unsigned i = 0; i < count && status == CLI_OK; i++) {
    take_result(json_array_get(all, pairs[i].from), &results[i]);
  }
  json_decref(all);
  return status;
}

/* ---- all pairs ---- */

static int measure_round(const struct survey *survey, unsigned device, unsigned round,
                         bool is_reverse) {
  struct pair pairs[PROBE_HOSTS_MAX / 2] = { { 0 } };
  struct probe_result results[PROBE_HOSTS_MAX / 2];
  unsigned count = 0, hosts = survey->report->host_count;
  for (unsigned host = 0; host < hosts; host++) {
    unsigned partner = pairs_partner(hosts, round, host);
    if (host < partner) {
      pairs[count++] = (struct pair){ .device = device,
                                      .from = is_reverse ? partner : host,
                                      .to = is_reverse ? host : partner };
    }
  }
  int status = measure_pairs(survey, pairs, count, results);
  for (unsigned i = 0; i < count && status == CLI_OK; i++) {
    *probe_at(survey->report, device, pairs[i].from, pairs[i].to) = results[i];
  }
  return status;
}

/* On a terminal only. */
static void tell_progress(const struct survey *survey, unsigned done, unsigned all) {
  if (survey->ranks->own == 0 && isatty(STDERR_FILENO)) {
    fprintf(stderr, "\r%u of %u rounds of pairs%s", done, all, done == all ? "\n" : "");
  }
}

static int measure_matrix(const struct survey *survey) {
  unsigned rounds = pairs_round_count(survey->report->host_count);
  unsigned all = survey->report->device_count * 2 * rounds;
  int status = CLI_OK;
  for (unsigned step = 0; step < all && status == CLI_OK; step++) {
    status = measure_round(survey, step / (2 * rounds), step / 2 % rounds, step % 2);
    tell_progress(survey, step + 1, all);
  }
  return status;
}

static void take_better(const struct probe_result *again, struct probe_result *result) {
  if (!again->is_measured) {
    return;
  }
  if (!result->is_measured) {
    *result = *again;
    return;
  }
  double rtt_us = again->rtt_us < result->rtt_us ? again->rtt_us : result->rtt_us;
  if (again->gbps > result->gbps) {
    *result = *again;
  }
  result->rtt_us = rtt_us;
}

/* Measures outliers again, one at a time: a host may have been busy. The better result counts.
 * Subtracts its measurements from *left. */
static int measure_again(const struct survey *survey, unsigned *left) {
  struct finding list[SURVEY_AGAIN_MAX];
  unsigned count = findings_list(survey->report, list, SURVEY_AGAIN_MAX);
  int status = CLI_OK;
  for (unsigned i = 0; i < count && i < SURVEY_AGAIN_MAX && *left && status == CLI_OK; i++) {
    struct probe_result again;
    struct pair pair = { list[i].device, list[i].from, list[i].to };
    if (list[i].is_lasting) {
      continue;
    }
    --*left;
    status = measure_pairs(survey, &pair, 1, &again);
    if (status == CLI_OK) {
      take_better(&again, probe_at(survey->report, pair.device, pair.from, pair.to));
    }
  }
  return status;
}

int survey_run(struct ranks *ranks, uint64_t duration_ns, struct probe_report *report) {
  const struct survey survey = { ranks, duration_ns, report };
  int status = discovery_run(&found) == 0
                   ? meet(ranks, report)
                   : cli_fail("%s cannot list its interfaces", settings_identity()->host);
  status = status ? status : measure_matrix(&survey);
  for (unsigned round = 0, left = SURVEY_AGAIN_MAX; round < SURVEY_AGAIN_ROUNDS && status == CLI_OK;
       round++) {
    status = measure_again(&survey, &left);
  }
  discovery_free(&found);
  return status;
}
