/* SPDX-License-Identifier: Apache-2.0 */
/* See placement.h. */
#include "net_plugin/plugin/placement.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "net_plugin/plugin/limits.h"

/* One number of a list; false if there is none here. */
static bool parse_number(const char **text, unsigned long *number) {
  char *end;
  if (!isdigit((unsigned char)**text)) {
    return false;
  }
  *number = strtoul(*text, &end, 10);
  *text = end;
  return *number < CPU_SETSIZE;
}

bool placement_parse(const char *text, cpu_set_t *cpus) {
  CPU_ZERO(cpus);
  for (;;) {
    unsigned long first, last;
    if (!parse_number(&text, &first)) {
      return false;
    }
    last = first;
    if (*text == '-') {
      text++;
      if (!parse_number(&text, &last) || last < first) {
        return false;
      }
    }
    for (unsigned long cpu = first; cpu <= last; cpu++) {
      CPU_SET(cpu, cpus);
    }
    if (*text == '\0') {
      return true;
    }
    if (*text++ != ',') {
      return false;
    }
  }
}

const char *placement_format(const cpu_set_t *cpus, char text[PLACEMENT_TEXT_MAX]) {
  size_t length = 0;
  text[0] = '\0';
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    unsigned last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(cpu, cpus) && CPU_ISSET(last + 1, cpus)) {
      last++;
    }
    if (!CPU_ISSET(cpu, cpus)) {
      continue;
    }
    if (length > PLACEMENT_TEXT_MAX - 24) {
      strcpy(text + length, ",...");
      break;
    }
    length += (size_t)snprintf(text + length, PLACEMENT_TEXT_MAX - length,
                               last > cpu ? "%s%u-%u" : "%s%u", length ? "," : "", cpu, last);
    cpu = last;
  }
  return text;
}

static const char *use_list(const cpu_set_t *list, const cpu_set_t *allowed, cpu_set_t *cpus) {
  char wanted[PLACEMENT_TEXT_MAX], given[PLACEMENT_TEXT_MAX];
  CPU_AND(cpus, list, allowed);
  if (!CPU_EQUAL(cpus, list)) {
    LOG_WARN("STRATUS_THREAD_CPUS=%s: the process may run on CPUs %s only%s",
             placement_format(list, wanted), placement_format(allowed, given),
             CPU_COUNT(cpus) ? "; the others are left out" : ", so its threads are left alone");
  }
  return CPU_COUNT(cpus) ? "STRATUS_THREAD_CPUS" : "none of STRATUS_THREAD_CPUS is allowed";
}

const char *placement_decide(const char *parameter, const cpu_set_t *allowed, const cpu_set_t *near,
                             cpu_set_t *cpus) {
  cpu_set_t list;
  CPU_ZERO(cpus);
  if (!strcmp(parameter, "none")) {
    return "STRATUS_THREAD_CPUS=none";
  }
  if (*parameter && placement_parse(parameter, &list)) {
    return use_list(&list, allowed, cpus);
  }
  if (*parameter) {
    LOG_WARN("STRATUS_THREAD_CPUS=%s is ignored; accepted are none, or CPUs up to %d as in 0-3,8",
             parameter, CPU_SETSIZE - 1);
  }
  if (CPU_COUNT(near) == 0) {
    return "the NIC's CPUs are not known";
  }
  if (CPU_COUNT(allowed) <= PLACEMENT_FEW_CPUS) {
    return "the process has few CPUs";
  }
  cpu_set_t common;
  CPU_AND(&common, near, allowed);
  if (CPU_EQUAL(&common, allowed)) {
    return "all of the process's CPUs are near the NIC";
  }
  if (CPU_COUNT(&common) < 2) {
    return "the process has no CPUs near the NIC";
  }
  *cpus = common;
  return "near the NIC";
}
