/* SPDX-License-Identifier: Apache-2.0 */
/* ablation: heuristics of the net plugin that a benchmark may switch off (STRATUS_ABLATE), one at a
 * time, to measure what each brings (`scripts/bench --ablate`). Every heuristic is one row here and
 * one `if` where it acts. Not for production: without some of them data of NCCL's LL protocols may
 * be wrong.
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
  X(DRIVE, "drive", "progress stays inline: no run-time trial of the engine's thread")             \
  X(HOLD, "hold", "small posts are not held for others to be coalesced with")                      \
  X(GATHER, "gather", "a TCP lane writes each small frame in its own system call")                 \
  X(NAP, "nap", "idle waiters never sleep")                                                        \
  X(GLANCE, "glance", "RDMA waiters do not peek at completion queues before they take the lock")   \
  X(TURN, "turn", "waiters ask the epoll set every time, not once in 16")                          \
  X(HOT, "hot", "waiters do not read lanes directly: they ask the epoll set")                      \
  X(OTHER, "other", "waiters read the hot lane and no other one directly")                         \
  X(LONG_HOLD, "longhold",                                                                         \
    "the engine's thread takes over 4 ms after the last poll, also while "                         \
    "NCCL waits")                                                                                  \
  X(PEEK, "peek", "small messages that are waited for are read at once, without MSG_PEEK")         \
  X(UNTAKEN, "untaken", "each receive is given to the link when it is posted")                     \
  X(OFFER, "offer", "the engine's thread does not offer its lock to those who wait for it")        \
  X(COPY, "copy", "eager messages are not copied: their sends complete when acknowledged")         \
  X(LL, "ll", "messages of LL and LL128 are not recognised (their data may be wrong)")             \
  X(NARROW, "narrow", "bulk always uses all lanes: no trial of few")                               \
  X(METER, "meter", "the rate of a single flow is not measured")                                   \
  X(REST, "rest", "what a lane was given does not keep it from the next message")                  \
  X(SLOW, "slow", "slow lanes get chunks like any other")                                          \
  X(UNKNOWN, "unknown", "lanes without a known rate get chunks like any other")                    \
  X(SPREAD, "spread", "slow flows are not reconnected")                                            \
  X(CHUNKS, "chunks", "chunks of constant size, whatever the message and the lane")                \
  X(WARM, "warm", "small messages do not stay on the last lane")                                   \
  X(GROW, "grow", "the first message opens all lanes, however small it is")                        \
  X(DELAY, "delay", "copied messages are acknowledged at once")                                    \
  X(LOWAT, "lowat", "no TCP_NOTSENT_LOWAT")

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
