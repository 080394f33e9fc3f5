/* SPDX-License-Identifier: Apache-2.0 */
/* pair: both ends of a connection in this process, over loopback, driven the way NCCL drives them
 * (retry until it comes out, test the oldest first).
 * Owns: nothing; close what was made.  Threads: the test's; a pair_end has one of its own.
 * Blocks: until what is waited for has happened.  Fails: the test, also after PATIENCE_NS. */
#ifndef TESTS_LIB_PAIR_H
#define TESTS_LIB_PAIR_H

#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/handle.h"
#include "net_plugin/setup/setup.h"
#include "tests/lib/until.h"

struct pair {
  struct connection *sender, *receiver;
};

/* Replaces all parameters by these, which spaces separate; NULL: none. */
void pair_set_parameters(const char *words);
struct nic pair_loopback(int family);
/* The two ends of a TCP connection over that. */
void pair_sockets(int fds[2]);
/* From now on that is this interface, with this IPv4 address: librdmacm finds no device by
 * 127.0.0.1. */
void pair_use(const char *nic, const char *address);
struct pair pair_make(int family);
void pair_close(struct pair pair);

/* ---- how it is made ---- */

/* A listener, and who connects to it. Copies share the listener. */
struct meeting {
  struct nic nics[NIC_MAX_FUSED]; /* of who connects */
  unsigned nic_count;
  uint8_t bytes[HANDLE_BYTES]; /* the handle that is connected by; the test may change it */
  struct handle handle;        /* what it says */
  struct listener *listener;
  struct pair pair; /* what has come of it */
};

/* The NICs are those of both. */
struct meeting meeting_open_nics(const struct nic *nics, unsigned count);
struct meeting meeting_open(int family);
/* NCCL's calls, once each, unless their end of the pair is there. The error of connect. */
int meeting_connect(struct meeting *meeting);
void meeting_accept(struct meeting *meeting);
/* Both; connect may not fail. */
void meeting_step(struct meeting *meeting);
/* Steps until both ends are there; the next call makes another pair. */
struct pair meeting_pair(struct meeting *meeting);
/* Connects until that fails, which must come before there is a sender; the error. */
int meeting_error(struct meeting *meeting);
void meeting_close(struct meeting *meeting);

/* ---- messages ---- */

enum { PAIR_DEPTH = 8 }; /* messages at a time */

/* One end, which sends or gets messages of these sizes in turn, and checks each byte (content.h).
 * Fails nothing: the first thing that was wrong is told. */
struct pair_end {
  struct connection *connection;
  const size_t *sizes;
  size_t kinds;
  uint64_t count, posted, done;
  char wrong[160]; /* empty: nothing */
  struct request *requests[PAIR_DEPTH];
  uint8_t *buffers[PAIR_DEPTH];
  const struct memory *memories[PAIR_DEPTH];
};
void pair_end_start(struct pair_end *end, struct connection *connection, const size_t *sizes,
                    size_t kinds, uint64_t count);
/* One more, if there is room. The receiver offers more than is sent. */
void pair_end_post(struct pair_end *end);
/* Tests the oldest, if there is one. */
void pair_end_test(struct pair_end *end);
void pair_end_stop(struct pair_end *end);

/* Sends `count` messages of these sizes in turn. disturb, if not NULL, is called whenever another
 * one has arrived. */
typedef void pair_disturb_fn(uint64_t done);
void pair_exchange(struct pair pair, const size_t *sizes, size_t kinds, uint64_t count,
                   pair_disturb_fn *disturb);
/* Sizes around every limit of the protocol. */
#define PAIR_SIZES 12
extern const size_t pair_sizes[PAIR_SIZES];

/* Ends every TCP connection of this process but each keep_every-th; 0: all. */
void pair_cut_flows(unsigned keep_every);
/* For pair_exchange: two in three connections of this process are cut every seventh message. */
void pair_cut_some(uint64_t done);
/* Makes a connection over which data arrives all the same, through these, and when all are cut. */
void pair_exchange_with_cuts(int family);

/* One message at one end: posts it, or else tests it. */
struct pair_half {
  struct connection *connection;
  uint8_t *data;
  size_t bytes;
  const struct memory *memory; /* NULL: not registered */
  struct request *request;
  bool is_done;
  int error;
};
void pair_half_step(struct pair_half *half);
/* Until both are done, or one has failed. */
void pair_halves(struct pair_half *from, struct pair_half *to);

/* One message, in memory that is registered, or NULL; it arrives. */
void pair_send_one(struct pair pair, size_t bytes, void *from, const struct memory *from_memory,
                   void *to, const struct memory *to_memory);

/* Posts what is not registered; it must be taken at once. */
struct request *pair_post(struct connection *connection, void *data, size_t bytes);
/* Tests the request until it is done or fails; 0 or the error. */
int pair_wait(struct request *request);

/* For cmocka. set_up: the parameters are those in *state, as in "STRATUS_FLOWS=3
 * STRATUS_THREADS=2", or none, and the log is captured. tear_down: a test leaves nothing behind.
 * Engines, threads, descriptors, the captured log and the parameters are gone. */
int pair_set_up(void **state);
int pair_tear_down(void **state);

#endif
