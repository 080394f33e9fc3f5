/* SPDX-License-Identifier: Apache-2.0 */
/* workload: reads and checks a workload file: what one training step computes and exchanges.
 * Owns: struct workload owns its texts and arrays, until workload_free.
 * Threads: any, on different structs.
 * Blocks: while the file is read.  Fails: -EINVAL with a message that names the file, the place in
 * it and what is accepted: "w.json: layers[3].parameters[0]: 0, expected 1 to 68719476736";
 * -ENOMEM and the errors of open, with a message too. The workload is then empty.
 *
 * The format: docs/workloads.md. Times are microseconds, counts are elements. No CUDA, no NCCL. */
#ifndef COLL_REPLAY_WORKLOAD_H
#define COLL_REPLAY_WORKLOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/coll/operation.h"

/* Far above any model; with scales of at most 1000 no sum of bytes leaves 64 bits. */
enum {
  WORKLOAD_LAYERS_MAX = 100000,
  WORKLOAD_PARAMETERS_MAX = 4096, /* of a layer */
  WORKLOAD_GROUPS_MAX = 64,
  WORKLOAD_GROUP_RANKS_MAX = 16384, /* size and stride of a group */
  WORKLOAD_EVENTS_MAX = 1000000,    /* sends and receives counted one by one */
  WORKLOAD_EXCHANGE_MAX = 4096,     /* of them in an exchange */
  WORKLOAD_SPLIT_MAX = 256,  /* counts of an uneven alltoall: more than any model has experts */
  WORKLOAD_ERROR_MAX = 1024, /* room for any message */
};
#define WORKLOAD_ELEMENTS_MAX (UINT64_C(1) << 36)
#define WORKLOAD_BUCKET_BYTES_MAX (UINT64_C(1) << 40)
#define WORKLOAD_US_MAX 1e9 /* microseconds of one entry */

/* ---- what a training step does: computes, starts a communication, waits for one ---- */

enum { PLAN_WORLD = 0 }; /* the group of all ranks */

enum plan_kind { PLAN_COMPUTE, PLAN_COLLECTIVE, PLAN_SEND, PLAN_RECV, PLAN_WAIT };

/* Elements that each rank of an alltoall sends to the parts of its group, or receives from them.
 * Runs of equal length belong to one rank: 8 counts are those of 8 ranks, or of 4 with two each. */
struct plan_split {
  bool is_received;
  unsigned count;
  uint64_t counts[];
};

/* Of a send or a receive, `root` is the peer, a rank of the group. */
struct plan_collective {
  enum operation operation;
  enum element_type type;
  enum pattern_redop redop; /* PATTERN_NONE where the operation has none */
  int root;                 /* a rank of the group; -1 where the operation has none */
  int group;                /* PLAN_WORLD, or 1 + place in the workload's groups */
  uint64_t elements;        /* the count argument of the NCCL call; with a split, of all of them */
  const struct plan_split *split; /* of an uneven alltoall; NULL: the same for all */
  double split_scale;             /* its counts are multiplied by it, see plan_part */
};

/* Whose item it is: that of the ranks with this place in their group. */
struct plan_only {
  int group;
  int place; /* 1 + the rank there; 0: of all ranks, and `group` means nothing */
};

struct plan_item {
  enum plan_kind kind;
  /* Of communication: 1, 2, 3, ... in order, and sends and receives that follow each other with the
   * same number are one call of NCCL. PLAN_WAIT: which of them. */
  uint32_t number;
  uint32_t event; /* its place in the list of the file */
  bool is_waited; /* some PLAN_WAIT of the file is for it, at all ranks that start it */
  double us;      /* PLAN_COMPUTE: microseconds */
  struct plan_only only;
  struct plan_collective collective;
};

/* Such items have a number of their own, and move data. */
static inline bool plan_is_communication(const struct plan_item *item) {
  return item->kind != PLAN_COMPUTE && item->kind != PLAN_WAIT;
}

/* ---- the file ---- */

enum workload_parallel {
  WORKLOAD_DDP,
  WORKLOAD_FSDP,
  WORKLOAD_ZERO2,
  WORKLOAD_TENSOR,
  WORKLOAD_EVENTS,
  WORKLOAD_PARALLELS
};
extern const char *const workload_parallel_names[WORKLOAD_PARALLELS];

struct workload_layer {
  char *name;
  uint64_t *parameters; /* elements of each tensor, in the order of registration */
  size_t parameter_count;
  double forward_us, backward_us;
  uint64_t activations; /* elements of the output; 0: not given */
};

/* Ranks of equal rank / (size * stride) and equal rank % stride are one group: `size` ranks,
 * `stride` apart. Size 0: all ranks of equal rank % stride. */
struct workload_group {
  char *name;
  int size, stride;
};

struct workload {
  char *name, *source;
  int batch; /* samples of one rank in one step */
  enum workload_parallel parallel;
  enum element_type gradient_type;
  uint64_t first_bucket_bytes; /* WORKLOAD_DDP */
  uint64_t bucket_bytes;       /* WORKLOAD_DDP, WORKLOAD_ZERO2 */
  double optimizer_us;

  struct workload_layer *layers; /* in the order of the forward pass */
  size_t layer_count;

  /* WORKLOAD_EVENTS. Communication has numbers in place of the file's ids; an exchange is as many
   * items as it has sends and receives. */
  struct workload_group *groups; /* without the world */
  size_t group_count;
  struct plan_item *events; /* items own their splits */
  size_t event_count;
};

/* `error` has room for WORKLOAD_ERROR_MAX. 0 or a negative errno. */
int workload_read(struct workload *workload, const char *path, char *error);

/* The same of a text in memory; `name` stands for the file in messages. */
int workload_parse(struct workload *workload, const char *text, size_t length, const char *name,
                   char *error);

void workload_free(struct workload *workload);

/* Where a workload that a user names is. What has a slash or ends in .json is a path; others are
 * built in: in PREFIX/share/stratus/workloads, or tuner_plugin/workloads of the source tree, found
 * from where the program's own file is. -ENOENT, with a message that names those that are there. */
int workload_find(const char *argument, char path[PATH_MAX], char *error);

#endif
