/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.h. */
#include "net_plugin/tools/probe/probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/quantile.h"
#include "net_plugin/tools/limits.h"

static double median(const struct probe_report *report, unsigned device, bool is_rtt) {
  unsigned hosts = report->host_count, count = 0;
  double *values = calloc((size_t)hosts * hosts + 1, sizeof *values);
  for (unsigned i = 0; values && i < hosts * hosts; i++) {
    const struct probe_result *it = probe_at(report, device, i / hosts, i % hosts);
    if (it->is_measured) {
      values[count++] = is_rtt ? it->rtt_us : it->gbps;
    }
  }
  double result = quantile_median(values, count);
  free(values);
  return result;
}

static unsigned usual_mtu(const struct probe_report *report, unsigned device) {
  unsigned hosts = report->host_count, best = 0, best_count = 0;
  for (unsigned i = 0; i < hosts * hosts; i++) {
    unsigned mtu = probe_at(report, device, i / hosts, i % hosts)->mtu, count = 0;
    for (unsigned j = 0; mtu && j < hosts * hosts; j++) {
      count += probe_at(report, device, j / hosts, j % hosts)->mtu == mtu;
    }
    if (count > best_count) {
      best = mtu;
      best_count = count;
    }
  }
  return best;
}

struct probe_usual findings_usual(const struct probe_report *report, unsigned device) {
  return (struct probe_usual){ median(report, device, false), median(report, device, true),
                               usual_mtu(report, device) };
}

/* ---- outliers ---- */

/* Whether the pair is an outlier, and which kind; the most severe first. */
static bool judge(const struct probe_report *report, const struct probe_usual *usual,
                  unsigned device, unsigned from, unsigned to, enum finding_kind *kind) {
  const struct probe_result *it = probe_at(report, device, from, to);
  const struct probe_result *back = probe_at(report, device, to, from);
  if (!it->is_measured) {
    *kind = it->is_black_hole ? FINDING_BLACK_HOLE : FINDING_FAILED;
    return it->error[0] != '\0';
  }
  if (it->gbps < FINDINGS_SLOW * usual->gbps) {
    bool is_back_good = back->is_measured && back->gbps >= FINDINGS_SLOW * usual->gbps;
    *kind = is_back_good ? FINDING_ONE_WAY : FINDING_SLOW;
    return true;
  }
  if (it->rtt_us > 2 * usual->rtt_us + FINDINGS_NEAR_US) {
    *kind = FINDING_FAR;
    return true;
  }
  *kind = FINDING_OTHER_MTU;
  return it->mtu && it->mtu != usual->mtu;
}

unsigned findings_list(const struct probe_report *report, struct finding *list, unsigned capacity) {
  unsigned count = 0, hosts = report->host_count;
  for (unsigned device = 0; device < report->device_count; device++) {
    const struct probe_usual usual = findings_usual(report, device);
    for (unsigned i = 0; i < hosts * hosts; i++) {
      enum finding_kind kind;
      unsigned from = i / hosts, to = i % hosts;
      if (from != to && judge(report, &usual, device, from, to, &kind)) {
        if (count < capacity) {
          list[count] = (struct finding){ kind, device, from, to };
        }
        count++;
      }
    }
  }
  return count;
}

bool findings_has_failed(const struct probe_report *report) {
  unsigned all = report->device_count * report->host_count * report->host_count;
  for (unsigned i = 0; i < all; i++) {
    if (report->results[i].error[0] != '\0') {
      return true;
    }
  }
  return false;
}

const char *finding_text(const struct probe_report *report, const struct finding *finding,
                         char text[FINDING_TEXT_MAX]) {
  const struct probe_result *it = probe_at(report, finding->device, finding->from, finding->to);
  int length = snprintf(
      text, FINDING_TEXT_MAX, "%s -> %s (%s): ", report->hosts[finding->from].name,
      report->hosts[finding->to].name, report->hosts[finding->from].devices[finding->device].name);
  char *at = text + length;
  size_t left = FINDING_TEXT_MAX - (size_t)length;
  struct probe_usual usual = findings_usual(report, finding->device);
  switch (finding->kind) {
  case FINDING_FAILED:
  case FINDING_BLACK_HOLE:
    snprintf(at, left, "%s", it->error);
    break;
  case FINDING_SLOW:
    snprintf(at, left, "slow, %.2f Gb/s where the median is %.2f", it->gbps, usual.gbps);
    break;
  case FINDING_ONE_WAY:
    snprintf(at, left, "slow in this direction only, %.2f Gb/s where the median is %.2f", it->gbps,
             usual.gbps);
    break;
  case FINDING_FAR:
    snprintf(at, left, "far, %.0f us round trip where the median is %.0f", it->rtt_us,
             usual.rtt_us);
    break;
  default:
    snprintf(at, left, "MTU %u where most have %u", it->mtu, usual.mtu);
  }
  return text;
}
