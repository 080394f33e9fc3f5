/* SPDX-License-Identifier: Apache-2.0 */
/* See verdict.h. */
#include "common/tools/verdict.h"

#include <stdlib.h>
#include <string.h>

struct host {
  char name[CHECK_HOST_MAX];
  char id[CHECK_ID_MAX];
  unsigned processes; /* that use stratus */
};

struct process {
  unsigned host; /* in `hosts` */
  long pid;
  bool is_in_use;
  bool has_communicator;
  uint64_t communicator_ns; /* the first one */
};

/* A host or peer that does not use stratus, and who says so. */
struct complaint {
  enum check_kind kind;
  unsigned host;
  char text[CHECK_TEXT_MAX];
};

/* Growing arrays: COUNT of them are used. */
struct verdict {
  struct host *hosts;
  struct process *processes;
  struct complaint *complaints;
  unsigned host_count, process_count, complaint_count;
  unsigned long ranks, nodes; /* of the communicator with most hosts */
  uint64_t complaint_ns;      /* the first */
};

struct verdict *verdict_new(void) {
  return calloc(1, sizeof(struct verdict));
}

void verdict_free(struct verdict *verdict) {
  free(verdict->hosts);
  free(verdict->processes);
  free(verdict->complaints);
  free(verdict);
}

/* Room for one more; false if there is none. Doubles at powers of two. */
static bool grow(void **array, unsigned count, size_t size) {
  if ((count & (count - 1)) != 0) {
    return true;
  }
  void *larger = realloc(*array, (count ? 2 * (size_t)count : 1) * size);
  if (!larger) {
    return false;
  }
  *array = larger;
  return true;
}

static struct process *find_process(struct verdict *verdict, const struct check_event *event) {
  unsigned host = 0;
  while (host < verdict->host_count && strcmp(verdict->hosts[host].id, event->host_id) != 0) {
    host++;
  }
  if (host == verdict->host_count) {
    if (!grow((void **)&verdict->hosts, host, sizeof *verdict->hosts)) {
      return NULL;
    }
    struct host *added = &verdict->hosts[verdict->host_count++];
    *added = (struct host){ 0 };
    memcpy(added->name, event->host, sizeof added->name);
    memcpy(added->id, event->host_id, sizeof added->id);
  }
  for (unsigned i = 0; i < verdict->process_count; i++) {
    if (verdict->processes[i].host == host && verdict->processes[i].pid == event->pid) {
      return &verdict->processes[i];
    }
  }
  if (!grow((void **)&verdict->processes, verdict->process_count, sizeof *verdict->processes)) {
    return NULL;
  }
  struct process *added = &verdict->processes[verdict->process_count++];
  *added = (struct process){ .host = host, .pid = event->pid };
  return added;
}

/* Once for each peer; of this host, once for each reason. */
static void add_complaint(struct verdict *verdict, const struct check_event *event, unsigned host,
                          uint64_t now_ns) {
  for (unsigned i = 0; i < verdict->complaint_count; i++) {
    const struct complaint *old = &verdict->complaints[i];
    if (old->kind == event->kind && strcmp(old->text, event->text) == 0 &&
        (event->kind == CHECK_NOT_PEER || old->host == host)) {
      return;
    }
  }
  if (!grow((void **)&verdict->complaints, verdict->complaint_count, sizeof *verdict->complaints)) {
    return;
  }
  if (verdict->complaint_count == 0) {
    verdict->complaint_ns = now_ns;
  }
  struct complaint *added = &verdict->complaints[verdict->complaint_count++];
  *added = (struct complaint){ .kind = event->kind, .host = host };
  memcpy(added->text, event->text, sizeof added->text);
}

void verdict_take(struct verdict *verdict, const struct check_event *event, uint64_t now_ns) {
  struct process *process = find_process(verdict, event);
  if (!process) {
    return;
  }
  switch (event->kind) {
  case CHECK_IN_USE:
    verdict->hosts[process->host].processes += !process->is_in_use;
    process->is_in_use = true;
    break;
  case CHECK_COMMUNICATOR:
    process->communicator_ns = process->has_communicator ? process->communicator_ns : now_ns;
    process->has_communicator = true;
    if (event->nodes > verdict->nodes) {
      verdict->nodes = event->nodes;
      verdict->ranks = event->ranks;
    }
    break;
  case CHECK_NOT_HERE:
  case CHECK_NOT_PEER:
    add_complaint(verdict, event, process->host, now_ns);
    break;
  case CHECK_KIND_COUNT:
    break;
  }
}

static unsigned long count_using(const struct verdict *verdict) {
  unsigned long using = 0;
  for (unsigned i = 0; i < verdict->host_count; i++) {
    using += verdict->hosts[i].processes > 0;
  }
  return using;
}

static bool is_without(const struct process *process) {
  return process->has_communicator && !process->is_in_use;
}

enum verdict_state verdict_judge(const struct verdict *verdict, uint64_t now_ns, bool is_end) {
  if (verdict->process_count == 0) {
    return VERDICT_NOTHING;
  }
  if (verdict->complaint_count > 0 &&
      (is_end || now_ns - verdict->complaint_ns >= VERDICT_SETTLE_NS)) {
    return VERDICT_FAILED;
  }
  for (unsigned i = 0; i < verdict->process_count; i++) {
    const struct process *process = &verdict->processes[i];
    if (is_without(process) && (is_end || now_ns - process->communicator_ns >= VERDICT_GRACE_NS)) {
      return VERDICT_FAILED;
    }
  }
  return count_using(verdict) < verdict->nodes ? VERDICT_DOUBT : VERDICT_GOOD;
}

/* ---- text ---- */

const char *verdict_peer(const struct verdict *verdict, unsigned which) {
  for (unsigned i = 0; i < verdict->complaint_count; i++) {
    if (verdict->complaints[i].kind == CHECK_NOT_PEER && which-- == 0) {
      return verdict->complaints[i].text;
    }
  }
  return NULL;
}

static void print_hosts(const struct verdict *verdict, FILE *out) {
  unsigned using = 0, processes = 0;
  for (unsigned i = 0; i < verdict->host_count; i++) {
    using += verdict->hosts[i].processes > 0;
    processes += verdict->hosts[i].processes;
  }
  fprintf(out, "%u process%s on %u host%s use%s stratus", processes, processes == 1 ? "" : "es",
          using, using == 1 ? "" : "s", processes == 1 ? "s" : "");
  if (verdict->nodes) {
    fprintf(out, "; the job has %lu ranks on %lu host%s", verdict->ranks, verdict->nodes,
            verdict->nodes == 1 ? "" : "s");
  }
  if (using && using < verdict->nodes) {
    fputs("; in use on", out);
    for (unsigned i = 0; i < verdict->host_count; i++) {
      if (verdict->hosts[i].processes) {
        fprintf(out, " %s", verdict->hosts[i].name);
      }
    }
  }
  fputc('\n', out);
}

void verdict_print(const struct verdict *verdict, verdict_name_fn *name, FILE *out) {
  for (unsigned i = 0; i < verdict->complaint_count; i++) {
    const struct complaint *each = &verdict->complaints[i];
    const char *who = verdict->hosts[each->host].name;
    if (each->kind == CHECK_NOT_HERE) {
      fprintf(out, "host %s does not use stratus: %s\n", who, each->text);
    } else {
      const char *found = name ? name(each->text) : NULL;
      fprintf(out, "host %s does not use stratus: host %s got another transport's handle from it",
              found ? found : each->text, who);
      fprintf(out, "%s%s%s\n", found ? " (" : "", found ? each->text : "", found ? ")" : "");
    }
  }
  for (unsigned i = 0; i < verdict->process_count; i++) {
    const struct process *process = &verdict->processes[i];
    if (is_without(process)) {
      fprintf(out,
              "host %s does not use stratus: NCCL has not loaded the net plugin in process %ld\n",
              verdict->hosts[process->host].name, process->pid);
    }
  }
  print_hosts(verdict, out);
}
