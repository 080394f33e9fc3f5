/* SPDX-License-Identifier: Apache-2.0 */
/* ablation: heuristics of the net plugin that a benchmark may switch off (STRATUS_ABLATE), one at a
 * time, to measure what each brings (`scripts/bench --ablate`). Every heuristic is one row here and
 * one `if` where it acts. What correctness needs has no switch.
 *
 *   X(NAME, word, what is done instead)
 *
 * Owns: one mask for the process.  Threads: ablation_load before any connection, the others any.
 * Blocks: never.  Fails: as stated. PURE code is given the mask in its configuration. */
#ifndef COMMON_ABLATION_H
#define COMMON_ABLATION_H

#include <stdbool.h>
#include <stdint.h>

#define ABLATION_TABLE(X)                                                                          \
  X(COALESCE, "coalesce", "small posts do not wait for others to be sent with")                    \
  X(GATHER, "gather", "a TCP lane writes each small frame by a system call of its own")            \
  X(IDLE_SLEEP, "idle-sleep", "idle waiters never sleep")                                          \
  X(CQ_PEEK, "cq-peek", "RDMA waiters do not peek at completion queues before they take the lock") \
  X(EPOLL, "epoll", "waiters ask the epoll set in each poll, not in one of 16")                    \
  X(HOT, "hot", "waiters read no lane directly: they ask the epoll set")                           \
  X(OTHER, "other", "waiters read the hot lane and no other one directly")                         \
  X(PEEK, "peek", "small messages are read at once, without MSG_PEEK")                             \
  X(COPY, "copy", "eager messages are not copied: their sends complete when acknowledged")         \
  X(ACK_DELAY, "ack-delay", "copied messages are acknowledged at once")                            \
  X(LOWAT, "lowat", "no TCP_NOTSENT_LOWAT")                                                        \
  X(FLOWS, "flows", "the number of flows stays as it was guessed at first")                        \
  X(SLOW, "slow", "slow lanes get chunks like any other")                                          \
  X(RECONNECT, "reconnect", "slow flows are not reconnected")                                      \
  X(CHUNKS, "chunks", "chunks of constant size, whatever the message and the lane")                \
  X(WARM, "warm", "small messages do not stay on the last lane")                                   \
  X(TURNS, "turns", "small messages do not take turns where lanes queue")                          \
  X(CHEAP, "cheap", "compression begins only where the network is the limit")                      \
  X(TAIL, "tail", "no PING behind last packets that seem to be lost")                              \
  X(REPEAT, "repeat", "nothing is sent again on another lane while its own stands still")

enum ablation {
#define ABLATION_ID(name, word, instead) ABLATION_##name,
  ABLATION_TABLE(ABLATION_ID)
#undef ABLATION_ID
      ABLATION_COUNT
};

/* Reads STRATUS_ABLATE. 0; -EINVAL, after LOG_WARN with the accepted words: an unknown one. */
int ablation_load(void);

extern uint64_t ablation_loaded; /* 0 until ablation_load */

/* A bit for each heuristic that is off. */
static inline uint64_t ablation_mask(void) {
  return ablation_loaded;
}
static inline bool ablation_has(uint64_t mask, enum ablation which) {
  return (mask >> which & 1) != 0;
}
/* This process does without it. */
static inline bool ablation_off(enum ablation which) {
  return ablation_has(ablation_mask(), which);
}

#endif
