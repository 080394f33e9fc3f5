/* SPDX-License-Identifier: Apache-2.0 */
/* policy: the decisions of a sending link: which lane carries the next chunk, how large the chunk
 * is, whether it is compressed, which lanes are wanted, which one is reconnected. Facts go in,
 * decisions come out. The link keeps what must be right whatever is decided here: order,
 * acknowledgements, credit, lane states, time limits. PURE: time arrives as an argument.
 *
 * Owns: its policy_bytes of the link's memory; policy_shared (see policy_shared.h) belongs to the
 * engine and is used by all links of that engine. Threads: the link's; policy_shared: one at a time
 * (the holder of the engine lock). Blocks: never.  Fails: cannot; "no lane" is -1.
 *
 * Contract, checked by tests/unit/test_policy.c:
 *  1. pick returns one of the candidates or -1. It may return -1 although there are candidates, if
 *     waiting for another lane is better; but then a later call returns a lane, at the latest when
 *     all lanes are candidates and nothing is in flight.
 *  2. chunk_bytes returns 0 only if `left` is 0, never more than `left` or POLICY_MAX_CHUNK_BYTES,
 *     and a multiple of POLICY_GRAIN_BYTES unless it is all of `left`. Without is_placed it is at
 *     most chunk_bytes of the configuration.
 *  3. reconnect returns a lane that is up, has nothing in flight and is not the only one.
 *  4. Facts may come in any order that a link can produce: lanes that come up again at once, a
 *     clock that does not advance. */
#ifndef NET_PLUGIN_POLICY_POLICY_H
#define NET_PLUGIN_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of the wire, which links check against their own (link_init.c). */
#define POLICY_MAX_LANES 64
#define POLICY_MAX_CHUNK_BYTES (4u << 20)
/* Chunks end at multiples of this: a line of 128 bytes of NCCL's LL128 protocol must not be split
 * over two lanes, since its end says that its beginning has come (see bytes_copy_upwards). */
#define POLICY_GRAIN_BYTES 4096u

struct policy_shared;

/* Sets of lanes are masks, here and in what uses it. */
static inline uint64_t lane_bit(unsigned lane) {
  return UINT64_C(1) << lane;
}
/* So many with the lowest numbers. */
static inline uint64_t lanes_below(unsigned lanes) {
  return lanes >= POLICY_MAX_LANES ? UINT64_MAX : lane_bit(lanes) - 1;
}

/* When chunks are compressed (net_plugin/codec). */
enum policy_compress {
  POLICY_COMPRESS_OFF,  /* never; the policy is not asked */
  POLICY_COMPRESS_AUTO, /* the policy decides, chunk by chunk */
  POLICY_COMPRESS_ON,   /* wherever it makes them shorter; the policy is not asked, only told */
};

/* How compressing a chunk went. */
struct policy_encoded {
  unsigned lane;
  uint32_t bytes;
  uint32_t coded_bytes; /* what is sent instead; 0: it would not pay, and goes as it is */
  uint64_t took_ns;     /* of the engine's thread; a chunk that is not even sampled takes about 0 */
};

/* What the transport of a lane has counted since the lane came up. */
struct policy_transport {
  uint64_t busy_us; /* with bytes that the peer's host had not acknowledged */
  uint64_t peer_us; /* of these, in which the peer's host could take no more */
  /* The last bytes that were acknowledged had left when the network could have taken more. */
  bool is_app_limited;
  bool has_unacked;     /* the peer's host has not acknowledged all that was sent */
  uint64_t acked_bytes; /* it acknowledged so many, in all */
  uint64_t rtt_min_us;  /* the least round trip time so far; 0: none was measured */
  uint64_t retransmits; /* packets that were sent again, in all */
  bool is_repairing;    /* packets are missing: it recovers, or its timeout has passed */
};

/* What holds a lane up. */
enum policy_limit {
  POLICY_LIMIT_UNKNOWN,     /* not measured */
  POLICY_LIMIT_APPLICATION, /* there is not more to send */
  POLICY_LIMIT_CPU,         /* threads do not run, or do not keep up, here or at the peer */
  POLICY_LIMIT_PEER,        /* the peer's host has no room for more */
  POLICY_LIMIT_NETWORK,
};

struct policy_config {
  unsigned lanes;             /* 1..POLICY_MAX_LANES: the most that there can be */
  unsigned first_lanes;       /* at most lanes: a guess of how many are worth having; 0: lanes */
  unsigned paths;             /* lanes whose numbers are equal modulo this share a path; 0 is 1 */
  uint32_t chunk_bytes;       /* largest, POLICY_GRAIN_BYTES to POLICY_MAX_CHUNK_BYTES */
  uint32_t usual_chunk_bytes; /* the same but for quick lanes, if less; 0: chunk_bytes */
  bool learns_lanes;          /* how many lanes are used is learned; else first_lanes are */
  bool reconnects_slow_lanes; /* a lane that stays slow may be closed for another path */
  enum policy_compress compress; /* agreed with the peer; OFF: the policy is not asked */
  struct policy_shared *shared;  /* outlives the policy; NULL: the number of lanes is not learned */
};

/* The largest chunk, and the usual one, in whole grains. */
static inline uint32_t policy_most_chunk_bytes(const struct policy_config *config) {
  return config->chunk_bytes & ~(POLICY_GRAIN_BYTES - 1);
}

static inline uint32_t policy_usual_chunk_bytes(const struct policy_config *config) {
  uint32_t usual = config->usual_chunk_bytes & ~(POLICY_GRAIN_BYTES - 1);
  uint32_t most = policy_most_chunk_bytes(config);
  return usual > 0 && usual < most ? usual : most;
}

static inline unsigned policy_first_lanes(const struct policy_config *config) {
  bool has_guess = config->first_lanes > 0 && config->first_lanes < config->lanes;
  return has_guess ? config->first_lanes : config->lanes;
}

/* Where a link keeps what policies read of its lanes, and keep no copy of. The counts are those of
 * lane 0; those of the next one lie `stride` bytes behind. */
struct policy_lanes {
  const uint64_t *up;        /* they can carry frames */
  const uint64_t *rdma;      /* of these, the RDMA lanes */
  const uint64_t *in_flight; /* bytes that were sent and not acknowledged */
  const uint64_t *acked;     /* bytes that were acknowledged, ever */
  size_t stride;
};

static inline uint64_t policy_count_of(const struct policy_lanes *lanes, const uint64_t *first,
                                       unsigned lane) {
  return *(const uint64_t *)(const void *)((const char *)first + lane * lanes->stride);
}

/* 0 of a lane that is not up: what it had is sent again. */
static inline uint64_t policy_in_flight(const struct policy_lanes *lanes, unsigned lane) {
  return (*lanes->up >> lane & 1) != 0 ? policy_count_of(lanes, lanes->in_flight, lane) : 0;
}

struct policy; /* policy.c */

size_t policy_bytes(void);
/* In `policy_bytes` of memory. config, what lanes points to and config->shared outlive it. */
void policy_init(struct policy *policy, const struct policy_config *config,
                 const struct policy_lanes *lanes);
/* The link ends; policy_shared keeps no reference to it. */
void policy_end(struct policy *policy);

/* ---- facts ---- */

/* The lane can carry frames. Nothing is in flight on it. */
void policy_lane_up(struct policy *policy, unsigned lane, uint64_t now_ns);
/* The lane cannot carry frames any more; what was in flight on it is sent again or was
 * acknowledged. The lane was up. */
void policy_lane_lost(struct policy *policy, unsigned lane);
/* A message was posted. */
void policy_posted(struct policy *policy, uint64_t bytes);
/* A chunk is about to be handed to the lane, which is up: it is not in flight yet. */
void policy_sent(struct policy *policy, unsigned lane, uint32_t bytes, uint64_t now_ns);
/* Chunks with so many bytes in total were acknowledged at once, and are not in flight any more.
 * The lane is up, and they were sent since it came up. */
void policy_acked(struct policy *policy, unsigned lane, uint64_t bytes, uint64_t now_ns);
/* A chunk that was to be compressed is about to be written. policy_sent was told of it before, and
 * policy_acked will be: both count bytes as they were before. */
void policy_encoded(struct policy *policy, const struct policy_encoded *encoded);
/* The transport of a lane that is up was asked for its counters. NULL: it has none. */
void policy_measured(struct policy *policy, unsigned lane, const struct policy_transport *transport,
                     uint64_t now_ns);

/* ---- decisions ---- */

/* How many lanes should be open, 1 to `lanes`: those with the lowest numbers. Others are closed
 * once nothing is in flight on them. Asked often. */
unsigned policy_lanes_wanted(const struct policy *policy, uint64_t now_ns);
/* The lane, among the candidates, for the next chunk of a message of which `left` bytes are not
 * cut yet (UINT64_MAX: a chunk that is sent again). Candidates are up and can take a chunk. */
int policy_pick(struct policy *policy, uint64_t candidates, uint64_t left, uint64_t now_ns);
/* How much of a message of `total` bytes, `left` of them not cut yet, the lane takes.
 * is_placed: a NIC writes the bytes where they belong. */
uint32_t policy_chunk_bytes(const struct policy *policy, unsigned lane, uint64_t total,
                            uint64_t left, bool is_placed);
/* Is the chunk that was cut just now to be compressed? Asked for each one that could be (it is
 * large enough, no kernel polls it, no NIC places it, and it is not sent again), if the
 * configuration says AUTO. */
bool policy_compress(const struct policy *policy);
/* Lanes whose transports are to be asked now, up to some microseconds each; the answers are given
 * at once. Asked often. */
uint64_t policy_wants_measured(const struct policy *policy, uint64_t now_ns);
/* The lane to close and reconnect now, for another path; -1: none. Asked about every 100 ms while
 * anything is in flight. */
int policy_reconnect(struct policy *policy, uint64_t now_ns);

/* ---- views: for time limits, statistics and tests ---- */

/* The time per byte that was learned for the lane, in picoseconds; 0: not known. */
uint32_t policy_ps_per_byte(const struct policy *policy, unsigned lane);
enum policy_limit policy_limit_of(const struct policy *policy, unsigned lane);

#endif
