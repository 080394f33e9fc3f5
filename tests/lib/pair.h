/* SPDX-License-Identifier: Apache-2.0 */
/* pair: both ends of a connection in this process, over loopback, driven the way NCCL drives them
 * (retry until it comes out, test the oldest first).
 * Owns: nothing; close what was made.  Threads: the test's.
 * Blocks: until what is waited for has happened.  Fails: the test, also after PATIENCE_NS. */
#ifndef TESTS_LIB_PAIR_H
#define TESTS_LIB_PAIR_H

#include "common/clock.h"
#include "net_plugin/plugin/plugin.h"
#include "net_plugin/setup/setup.h"

#define PATIENCE_NS (20 * NS_PER_S)

struct pair {
  struct connection *sender, *receiver;
};

/* Replaces all parameters by these, which spaces separate; NULL: none. */
void pair_set_parameters(const char *words);
struct nic pair_loopback(int family);
/* From now on that is this interface, with this IPv4 address: librdmacm finds no device by
 * 127.0.0.1. */
void pair_use(const char *nic, const char *address);
struct pair pair_make(int family);
void pair_close(struct pair pair);
/* Connects by this handle, which the test may have changed. */
struct pair pair_connect(const struct nic *nic, uint8_t handle[HANDLE_BYTES],
                         struct listener *listener);
struct pair pair_connect_nics(const struct nic *nics, unsigned count, uint8_t handle[HANDLE_BYTES],
                              struct listener *listener);

/* Sends `count` messages of these sizes in turn and checks each byte (content.h). disturb, if not
 * NULL, is called whenever another one has arrived. */
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

/* Tests the request until it fails; the error, or 0: it was done, or PATIENCE_NS have passed. */
int pair_error(struct request *request);

/* Sends small messages, and closes the sender as soon as they are done; they arrive all the same.
 * Closes the receiver, too. */
void pair_send_and_close(struct pair pair);

/* For cmocka. set_up: the parameters are those in *state, as in "STRATUS_FLOWS=3
 * STRATUS_THREADS=2", or none, and the log is captured. tear_down: a test leaves nothing behind.
 * Engines, threads, descriptors, the captured log and the parameters are gone. */
int pair_set_up(void **state);
int pair_tear_down(void **state);

#endif
