/* SPDX-License-Identifier: Apache-2.0 */
/* timed: the two links of a connection, and the time that passes for them. Frames are handed over
 * by function call, or vanish; either side may be stopped. Owns: the links, from begin to end.
 * Threads: the test's.  Blocks: never.  Fails: the test. */
#ifndef TESTS_LIB_TIMED_H
#define TESTS_LIB_TIMED_H

#include "net_plugin/link/link.h"
#include "tests/lib/coding_memory.h"

#define TIMED_LANES 3u
#define TIMED_ALL 7ull /* lanes, as bits */
#define TIMED_TIMEOUT 10000000000ull
#define TIMED_STOPPED_TIMEOUT 300000000000ull
#define TIMED_BULK (256u << 10) /* the most that can be posted */
#define TIMED_CODING 100u       /* ns that a chunk takes to be compressed */

struct timed {
  struct link *links[2]; /* by enum link_role */
  uint64_t black[2];     /* lanes on which what this side writes vanishes */
  bool is_mute[2];       /* likewise on all lanes, those that come up later, too */
  uint32_t largest;      /* a frame with more payload vanishes, and what follows it; 0: none */
  bool is_stopped[2];
  bool does_host_answer[2]; /* to who looks whether it does */
  bool has_kernel_all;      /* who asks its lanes hears that nothing is unacknowledged */
  uint64_t pinged[2];       /* lanes on which this side has written a PING */
  bool can_dial;
  uint64_t now_ns;
  unsigned completed[2];
  struct coding_memory memories[2];
  uint8_t out[TIMED_BULK], in[TIMED_BULK];
};
extern struct timed timed;

/* All of it anew, with so many lanes up. */
void timed_begin(unsigned lanes_up);
/* The same with another timeout than TIMED_TIMEOUT, and no more lanes than these. */
void timed_begin_patient(unsigned lanes_up, uint64_t timeout_ns);
/* The same with links of this configuration, but for the role. */
void timed_begin_with(struct link_config config, unsigned lanes_up);
/* For cmocka: the teardown of each test. */
int timed_end(void **state);

enum link_role timed_other(enum link_role role);
void timed_lane_up(unsigned lane, uint32_t epoch);
/* A message, at both ends. */
void timed_post(size_t bytes);
/* The frame that this side writes on the lane next, compressed if its link wants that. */
bool timed_take(enum link_role from, unsigned lane, struct link_frame *frame);
/* Hands it over; the error of the link that gets it. */
int timed_deliver(enum link_role to, unsigned lane, const struct link_frame *frame);
/* Hands over all frames that this side has for now; were there any? */
bool timed_carry(enum link_role from);
/* Orders are followed and frames carried until nothing is left to do at this moment. */
void timed_settle(void);
/* Lets time pass; both owners come when they were asked to. */
void timed_pass(uint64_t for_ns);
struct link_view timed_view(enum link_role role);

#endif
