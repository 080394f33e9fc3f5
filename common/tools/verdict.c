/* SPDX-License-Identifier: Apache-2.0 */
/* See verdict.h. */
#include "common/tools/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "common/tools/limits.h"

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

/* A rank of a communicator of the largest size: its process, and which of its events said so. */
struct member {
  uint64_t communicator;
  unsigned process; /* in `processes` */
  unsigned long number;
};

/* Growing arrays: COUNT of them are used. */
struct verdict {
  bool is_alone;
  struct host *hosts;
  struct process *processes;
  struct complaint *complaints;
  struct member *members;
  unsigned host_count, process_count, complaint_count, member_count;
  unsigned long ranks;   /* of the largest communicator */
  bool is_complete;      /* all ranks of one of that size have spoken: no more members are kept */
  int size, spoken;      /* processes of the largest launch, and those that have said anything */
  bool *has_spoken;      /* by rank, `size` of them */
  uint64_t complaint_ns; /* the first */
};

struct verdict *verdict_new(bool is_alone) {
  struct verdict *verdict = calloc(1, sizeof *verdict);
  if (verdict) {
    verdict->is_alone = is_alone;
  }
  return verdict;
}

void verdict_free(struct verdict *verdict) {
  free(verdict->hosts);
  free(verdict->processes);
  free(verdict->complaints);
  free(verdict->members);
  free(verdict->has_spoken);
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

/* A script may launch several times: the largest one counts. */
static void note_rank(struct verdict *verdict, const struct check_event *event) {
  if (event->size > verdict->size) {
    bool *larger = calloc((size_t)event->size, sizeof *larger);
    if (!larger) {
      return;
    }
    free(verdict->has_spoken);
    verdict->has_spoken = larger;
    verdict->size = event->size;
    verdict->spoken = 0;
  }
  if (event->size > 0 && event->size == verdict->size) {
    verdict->spoken += !verdict->has_spoken[event->rank];
    verdict->has_spoken[event->rank] = true;
  }
}

static unsigned long count_members(const struct verdict *verdict, uint64_t communicator) {
  unsigned long count = 0;
  for (unsigned i = 0; i < verdict->member_count; i++) {
    count += verdict->members[i].communicator == communicator;
  }
  return count;
}

static void add_member(struct verdict *verdict, const struct check_event *event, unsigned process) {
  if (event->ranks > verdict->ranks) {
    verdict->ranks = event->ranks;
    verdict->is_complete = false;
    verdict->member_count = 0;
  }
  if (event->ranks < verdict->ranks || verdict->is_complete) {
    return;
  }
  for (unsigned i = 0; i < verdict->member_count; i++) {
    if (verdict->members[i].process == process && verdict->members[i].number == event->number) {
      return;
    }
  }
  if (!grow((void **)&verdict->members, verdict->member_count, sizeof *verdict->members)) {
    return;
  }
  verdict->members[verdict->member_count++] = (struct member){ .communicator = event->communicator,
                                                               .process = process,
                                                               .number = event->number };
  verdict->is_complete = count_members(verdict, event->communicator) >= verdict->ranks;
}

void verdict_take(struct verdict *verdict, const struct check_event *event, uint64_t now_ns) {
  struct process *process = find_process(verdict, event);
  if (!process) {
    return;
  }
  note_rank(verdict, event);
  switch (event->kind) {
  case CHECK_IN_USE:
    verdict->hosts[process->host].processes += !process->is_in_use;
    process->is_in_use = true;
    break;
  case CHECK_COMMUNICATOR:
    process->communicator_ns = process->has_communicator ? process->communicator_ns : now_ns;
    process->has_communicator = true;
    add_member(verdict, event, (unsigned)(process - verdict->processes));
    break;
  case CHECK_NOT_HERE:
  case CHECK_NOT_PEER:
    add_complaint(verdict, event, process->host, now_ns);
    break;
  case CHECK_KIND_COUNT:
    break;
  }
}

static bool is_without(const struct process *process) {
  return process->has_communicator && !process->is_in_use;
}

/* The addresses of peers without stratus, one after the other; NULL behind the last. */
static const char *silent_peer(const struct verdict *verdict, unsigned which) {
  for (unsigned i = 0; i < verdict->complaint_count; i++) {
    if (verdict->complaints[i].kind == CHECK_NOT_PEER && which-- == 0) {
      return verdict->complaints[i].text;
    }
  }
  return NULL;
}

/* Where complaints name fewer peers than are silent, others may speak soon. */
static uint64_t settle_ns(const struct verdict *verdict) {
  unsigned named = 0;
  while (silent_peer(verdict, named)) {
    named++;
  }
  bool has_riddles = !verdict->is_alone && verdict->size - verdict->spoken > (int)named;
  return has_riddles ? VERDICT_SILENCE_NS : VERDICT_SETTLE_NS;
}

static bool has_failed(const struct verdict *verdict, uint64_t now_ns, bool is_end) {
  if (verdict->complaint_count > 0 &&
      (is_end || now_ns - verdict->complaint_ns >= settle_ns(verdict))) {
    return true;
  }
  for (unsigned i = 0; i < verdict->process_count; i++) {
    const struct process *process = &verdict->processes[i];
    if (is_without(process) && (is_end || now_ns - process->communicator_ns >= VERDICT_GRACE_NS)) {
      return true;
    }
  }
  return false;
}

/* Processes of a launch need not all be in NCCL's job: those of a smaller communicator that ended
 * well were it without the others. */
static bool has_heard_all(const struct verdict *verdict, enum verdict_moment moment) {
  bool is_failure = moment == VERDICT_HAS_FAILED;
  bool counts_all =
      is_failure || verdict->ranks == 0 || verdict->ranks >= (unsigned long)verdict->size;
  if (verdict->spoken < verdict->size && counts_all) {
    return false;
  }
  return verdict->ranks > 0 ? verdict->is_complete : !is_failure;
}

enum verdict_state verdict_judge(const struct verdict *verdict, uint64_t now_ns,
                                 enum verdict_moment moment) {
  if (verdict->process_count == 0) {
    return VERDICT_NOTHING;
  }
  if (has_failed(verdict, now_ns, moment != VERDICT_RUNNING)) {
    return VERDICT_FAILED;
  }
  return verdict->is_alone || has_heard_all(verdict, moment) ? VERDICT_GOOD : VERDICT_DOUBT;
}

/* ---- text ---- */

static void print_names(const struct verdict *verdict, FILE *out) {
  for (unsigned i = 0; i < verdict->host_count; i++) {
    if (verdict->hosts[i].processes) {
      fprintf(out, " %s", verdict->hosts[i].name);
    }
  }
}

static void print_hosts(const struct verdict *verdict, bool is_good, FILE *out) {
  unsigned using = 0, processes = 0;
  for (unsigned i = 0; i < verdict->host_count; i++) {
    using += verdict->hosts[i].processes > 0;
    processes += verdict->hosts[i].processes;
  }
  fprintf(out, "%u process%s on %u host%s use%s stratus", processes, processes == 1 ? "" : "es",
          using, using == 1 ? "" : "s", processes == 1 ? "s" : "");
  if (verdict->ranks) {
    fprintf(out, "; NCCL's job has %lu rank%s", verdict->ranks, verdict->ranks == 1 ? "" : "s");
  } else if (!is_good) {
    fputs("; none has said that NCCL made a communicator", out);
  }
  if (using && !is_good) {
    fputs("; in use on", out);
    print_names(verdict, out);
  }
  fputc('\n', out);
}

/* More than so many ranks are counted, not named. */
enum { NAMED_MAX = 16 };

static void print_silent(const struct verdict *verdict, FILE *out) {
  int silent = verdict->size - verdict->spoken, named = 0;
  if (silent == 0 || verdict->is_alone) {
    return;
  }
  fputs(silent == 1 ? "rank" : "ranks", out);
  for (int rank = 0; rank < verdict->size && named < NAMED_MAX; rank++) {
    if (!verdict->has_spoken[rank]) {
      fprintf(out, "%s %d", named++ ? "," : "", rank);
    }
  }
  if (silent > named) {
    fprintf(out, " and %d others", silent - named);
  }
  fprintf(
      out,
      " of %d ha%s not said anything: NCCL there did not get as far as its network, or does not "
      "load the plugin\n",
      verdict->size, silent == 1 ? "s" : "ve");
}

void verdict_print(const struct verdict *verdict, bool is_good, verdict_name_fn *name, FILE *out) {
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
  print_silent(verdict, out);
  print_hosts(verdict, is_good, out);
}
