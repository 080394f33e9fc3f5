/* SPDX-License-Identifier: Apache-2.0 */
/* See results.h. */
#include "net_plugin/tools/probe/results.h"

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

/* Whether the pair is an outlier, by the most severe of what it shows: it could not be measured; it
 * is below FINDINGS_SLOW of the median, or has a round trip of over twice the median, or another
 * MTU than most pairs. */
static bool judge(const struct probe_report *report, const struct probe_usual *usual,
                  struct finding *finding) {
  unsigned device = finding->device, from = finding->from, to = finding->to;
  const struct probe_result *it = probe_at(report, device, from, to);
  const struct probe_result *back = probe_at(report, device, to, from);
  double slow_gbps = FINDINGS_SLOW * usual->gbps;
  int length =
      snprintf(finding->text, FINDING_TEXT_MAX, "%s -> %s (%s): ", report->hosts[from].name,
               report->hosts[to].name, report->hosts[from].devices[device].name);
  char *text = finding->text + length;
  size_t room = FINDING_TEXT_MAX - (size_t)length;
  if (!it->is_measured) {
    finding->is_lasting = it->is_black_hole;
    snprintf(text, room, "%s", it->error);
    return it->error[0] != '\0';
  }
  if (it->gbps < slow_gbps) {
    snprintf(text, room, "slow%s, %.2f Gb/s where the median is %.2f",
             back->is_measured && back->gbps >= slow_gbps ? " in this direction only" : "",
             it->gbps, usual->gbps);
    return true;
  }
  if (it->rtt_us > 2 * usual->rtt_us + FINDINGS_NEAR_US) {
    snprintf(text, room, "far, %.0f us round trip where the median is %.0f", it->rtt_us,
             usual->rtt_us);
    return true;
  }
  finding->is_lasting = true;
  snprintf(text, room, "MTU %u where most have %u", it->mtu, usual->mtu);
  return it->mtu && it->mtu != usual->mtu;
}

unsigned findings_list(const struct probe_report *report, struct finding *list, unsigned capacity) {
  unsigned count = 0, hosts = report->host_count;
  for (unsigned device = 0; device < report->device_count; device++) {
    const struct probe_usual usual = findings_usual(report, device);
    for (unsigned i = 0; i < hosts * hosts; i++) {
      struct finding finding = { .device = device, .from = i / hosts, .to = i % hosts };
      if (finding.from != finding.to && judge(report, &usual, &finding)) {
        if (count < capacity) {
          list[count] = finding;
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
