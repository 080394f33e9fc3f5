/* SPDX-License-Identifier: Apache-2.0 */
/* policy_facts: what a link tells its policy, and what the policy's parts share.
 * Owns: nothing.  Threads: the link's.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_POLICY_POLICY_FACTS_H
#define NET_PLUGIN_POLICY_POLICY_FACTS_H

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

static inline unsigned policy_paths(const struct policy_config *config) {
  return config->paths > 0 ? config->paths : 1;
}

static inline unsigned policy_first_lanes(const struct policy_config *config) {
  bool has_guess = config->first_lanes > 0 && config->first_lanes < config->lanes;
  return has_guess ? config->first_lanes : config->lanes;
}

#endif
