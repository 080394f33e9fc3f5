/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.h. Disjoint pairs measure at the same time: each host sends or receives at most one
 * measurement. */
#include "net_plugin/tools/probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/time_units.h"
#include "common/plain.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/control_channel.h"

struct survey {
  unsigned count;
  struct control_channel channels[PROBE_HOSTS_MAX];
  struct probe_host hosts[PROBE_HOSTS_MAX];
};

/* ---- hosts ---- */

static int take_host(const json_t *answer, struct probe_host *host) {
  const char *name = json_string_value(json_object_get(answer, "host"));
  const json_t *devices = json_object_get(answer, "devices");
  snprintf(host->name, sizeof host->name, "%s", name ? name : "?");
  plain_text(host->name);
  for (size_t i = 0; i < json_array_size(devices) && i < PROBE_DEVICES_MAX; i++) {
    const json_t *it = json_array_get(devices, i);
    const char *device = json_string_value(json_object_get(it, "name"));
    host->devices[i].speed_mbps = (unsigned)json_integer_value(json_object_get(it, "speed_mbps"));
    host->devices[i].numa_node = (int)json_integer_value(json_object_get(it, "numa_node"));
    snprintf(host->devices[i].name, PROBE_NAME_MAX, "%s", device ? device : "?");
    plain_text(host->devices[i].name);
    host->device_count++;
  }
  return host->device_count ? CLI_OK : cli_fail("%s has no usable interface", host->name);
}

/* Agents with equal names are distinguished by their index. */
static void make_unique(struct survey *survey, unsigned place) {
  for (unsigned i = 0; i < place; i++) {
    if (strcmp(survey->hosts[i].name, survey->hosts[place].name) == 0) {
      size_t length = strnlen(survey->hosts[place].name, PROBE_NAME_MAX - 8);
      snprintf(survey->hosts[place].name + length, PROBE_NAME_MAX - length, "#%u", place);
      return;
    }
  }
}

int survey_open(const int *agents, unsigned count, struct survey **result) {
  struct survey *survey = calloc(1, sizeof *survey);
  int status = survey ? CLI_OK : cli_fail("out of memory");
  for (unsigned i = 0; i < count; i++) {
    if (status != CLI_OK) {
      close(agents[i]);
      continue;
    }
    json_t *answer = NULL;
    survey->count++;
    status = control_channel_open(&survey->channels[i], agents[i], "an agent");
    status = status ? status
                    : control_channel_ask(&survey->channels[i], json_pack("{s:s}", "task", "tell"),
                                          "host", SURVEY_ANSWER_NS, &answer);
    status = status ? status : take_host(answer, &survey->hosts[i]);
    json_decref(answer);
    if (status == CLI_OK) {
      make_unique(survey, i);
      survey->channels[i].peer = survey->hosts[i].name;
    }
  }
  *result = survey;
  return status;
}

/* ---- one measurement ---- */

struct pair {
  unsigned from, to;
  struct probe_load load;
  bool is_in_progress;
  struct probe_result *result;
};

/* The error is an agent's, so any number, and what it says of it any text. */
static int fail_pair(struct pair *pair, int64_t error, const char *where, const char *why) {
  const char *text = error < 0 && error >= INT32_MIN + 1 ? strerror((int)-error) : "unknown error";
  snprintf(pair->result->error, PROBE_ERROR_MAX, "%s: %s", where, why && *why ? why : text);
  plain_text(pair->result->error);
  return CLI_OK;
}

static void note_black_hole(struct pair *pair, unsigned mtu) {
  pair->result->is_black_hole = true;
  snprintf(pair->result->error, PROBE_ERROR_MAX,
           "short packets pass, long ones do not (the NIC's MTU is %u): something on the way takes "
           "less and does not say so. Lower the MTU of both NICs, or mend the path",
           mtu);
}

/* Starts both sides. */
static int begin(struct survey *survey, struct pair *pair) {
  json_t *answer;
  struct control_channel *to = &survey->channels[pair->to], *from = &survey->channels[pair->from];
  *pair->result = (struct probe_result){ 0 };
  int status = control_channel_ask(to,
                                   json_pack("{s:s, s:i, s:i}", "task", "serve", "device",
                                             (int)pair->load.device, "duration_ms",
                                             (int)(pair->load.duration_ns / NS_PER_MS)),
                                   "handle", SURVEY_ANSWER_NS, &answer);
  if (status != CLI_OK) {
    return status;
  }
  const char *handle = json_string_value(json_object_get(answer, "handle"));
  if (!handle || !handle[0]) {
    status = fail_pair(pair, json_integer_value(json_object_get(answer, "error")), "cannot listen",
                       NULL);
  } else {
    pair->is_in_progress = true;
    status = control_channel_send(from,
                                  json_pack("{s:s, s:i, s:s, s:i}", "task", "send", "device",
                                            (int)pair->load.device, "handle", handle, "duration_ms",
                                            (int)(pair->load.duration_ns / NS_PER_MS)));
  }
  json_decref(answer);
  return status;
}

/* What is no number ends the reading: the rest is 0. */
static void take_result(const json_t *answer, struct probe_result *result) {
  json_unpack((json_t *)(uintptr_t)answer, "{s?i, s?F, s?F}", "mtu", &result->mtu, "gbps",
              &result->gbps, "rtt_us", &result->rtt_us);
  result->is_measured = true;
}

static int finish(struct survey *survey, struct pair *pair) {
  json_t *sent = NULL, *served = NULL;
  if (!pair->is_in_progress) {
    return CLI_OK;
  }
  int status =
      control_channel_receive(&survey->channels[pair->from], "sent", SURVEY_MEASURED_NS, &sent);
  status = status ? status
                  : control_channel_receive(&survey->channels[pair->to], "served",
                                            SURVEY_MEASURED_NS, &served);
  json_int_t error = json_integer_value(json_object_get(sent, "sent"));
  if (status == CLI_OK && error == 0) {
    take_result(sent, pair->result);
  } else if (status == CLI_OK && error == -EMSGSIZE) {
    note_black_hole(pair, (unsigned)json_integer_value(json_object_get(sent, "mtu")));
  } else if (status == CLI_OK) {
    fail_pair(pair, error, "cannot send", json_string_value(json_object_get(sent, "why")));
  }
  json_decref(sent);
  json_decref(served);
  return status;
}

/* Pairs that can run together: at most one per host. */
static int measure_pairs(struct survey *survey, struct pair *pairs, unsigned count) {
  int status = CLI_OK;
  for (unsigned i = 0; i < count && status == CLI_OK; i++) {
    status = begin(survey, &pairs[i]);
  }
  for (unsigned i = 0; i < count && status == CLI_OK; i++) {
    status = finish(survey, &pairs[i]);
  }
  return status;
}

/* ---- all pairs ---- */

static int measure_round(struct survey *survey, uint64_t duration_ns, unsigned device,
                         unsigned round, bool is_reverse, struct probe_report *report) {
  struct pair pairs[PROBE_HOSTS_MAX / 2];
  unsigned count = 0;
  for (unsigned host = 0; host < survey->count; host++) {
    unsigned partner = pairs_partner(survey->count, round, host);
    if (host < partner) {
      unsigned from = is_reverse ? partner : host, to = is_reverse ? host : partner;
      pairs[count++] = (struct pair){ .from = from,
                                      .to = to,
                                      .load = { .duration_ns = duration_ns, .device = device },
                                      .result = probe_at(report, device, from, to) };
    }
  }
  return measure_pairs(survey, pairs, count);
}

/* On a terminal only. */
static void tell_progress(unsigned done, unsigned all) {
  if (isatty(STDERR_FILENO)) {
    fprintf(stderr, "\r%u of %u rounds of pairs%s", done, all, done == all ? "\n" : "");
  }
}

static int measure_matrix(struct survey *survey, uint64_t duration_ns,
                          struct probe_report *report) {
  unsigned rounds = pairs_round_count(survey->count);
  int status = CLI_OK;
  unsigned all = report->device_count * 2 * rounds;
  for (unsigned step = 0; step < all && status == CLI_OK; step++) {
    unsigned device = step / (2 * rounds), round = step / 2 % rounds;
    status = measure_round(survey, duration_ns, device, round, step % 2, report);
    tell_progress(step + 1, all);
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
static int measure_again(struct survey *survey, uint64_t duration_ns, struct probe_report *report,
                         unsigned *left) {
  struct finding list[SURVEY_AGAIN_MAX];
  unsigned count = findings_list(report, list, SURVEY_AGAIN_MAX);
  int status = CLI_OK;
  for (unsigned i = 0; i < count && i < SURVEY_AGAIN_MAX && *left && status == CLI_OK; i++) {
    struct probe_result again;
    struct pair pair = { .from = list[i].from,
                         .to = list[i].to,
                         .load = { .duration_ns = duration_ns, .device = list[i].device },
                         .result = &again };
    if (list[i].kind == FINDING_OTHER_MTU || list[i].kind == FINDING_BLACK_HOLE) {
      continue;
    }
    --*left;
    status = measure_pairs(survey, &pair, 1);
    if (status == CLI_OK) {
      take_better(&again, probe_at(report, list[i].device, list[i].from, list[i].to));
    }
  }
  return status;
}

int survey_run(struct survey *survey, uint64_t duration_ns, struct probe_report *report) {
  *report = (struct probe_report){
    .host_count = survey->count,
    .device_count = PROBE_DEVICES_MAX,
    .hosts = survey->hosts,
  };
  for (unsigned i = 0; i < survey->count; i++) {
    if (survey->hosts[i].device_count < report->device_count) {
      report->device_count = survey->hosts[i].device_count;
    }
  }
  report->results =
      calloc((size_t)report->device_count * survey->count * survey->count, sizeof *report->results);
  if (!report->results) {
    return cli_fail("out of memory");
  }
  int status = measure_matrix(survey, duration_ns, report);
  for (unsigned round = 0, left = SURVEY_AGAIN_MAX; round < SURVEY_AGAIN_ROUNDS && status == CLI_OK;
       round++) {
    status = measure_again(survey, duration_ns, report, &left);
  }
  return status;
}

void survey_close(struct survey *survey, struct probe_report *report) {
  for (unsigned i = 0; survey && i < survey->count; i++) {
    control_channel_send(&survey->channels[i], json_pack("{s:s}", "task", "end"));
    control_channel_close(&survey->channels[i]);
  }
  free(report->results);
  free(survey);
}
