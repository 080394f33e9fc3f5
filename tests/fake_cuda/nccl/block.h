/* SPDX-License-Identifier: Apache-2.0 */
/* block: version-independent view of what an NCCL kernel works on, and the parts of the emulation.
 *
 * One emulated block runs on one thread. A block is a channel. Two situations need extra threads
 * because on a GPU different warps make progress independently: send/recv items and the two
 * directions of a tree.
 *
 * Owns: only its own structs; connections and buffers are NCCL's.  Threads: one per block, plus
 * those two situations.  Blocks: until peers and proxies have done their part, or abort.
 * Fails: cannot; an abort ends every wait. */
#ifndef FAKE_CUDA_NCCL_BLOCK_H
#define FAKE_CUDA_NCCL_BLOCK_H

#include "tests/fake_cuda/nccl/facts.h"
#include "tests/fake_cuda/nccl/own.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline uint64_t load_acquire(const void *p) {
  return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
}

static inline void store_release(void *p, uint64_t value) {
  __atomic_store_n((uint64_t *)p, value, __ATOMIC_RELEASE);
}

/* ---- functions.c: the function table that batch.funcId indexes ---- */

struct nccl_function {
  int coll, op, type, algo, proto; /* -1 where not applicable */
};

struct nccl_function_table {
  int count;
  struct nccl_function functions[4096];
};

void nccl_functions_build(struct nccl_function_table *table, const struct nccl_facts *facts,
                          const int *row_to_id);
void nccl_function_name(char *text, size_t size, const struct nccl_function *function);

/* ---- reduce.c ---- */

struct reduction {
  int type, op;
  int size; /* of an element */
  uint64_t arg;
};

int nccl_type_size(int type);
/* out = a (op) b */
void reduce_pair(const struct reduction *r, void *out, const void *a, const void *b, size_t count);
/* The scaling that PreMulSum does before and SumPostDiv after the sum. */
void reduce_pre(const struct reduction *r, void *out, const void *in, size_t count);
void reduce_post(const struct reduction *r, void *data, size_t count);
/* Every destination = post(pre(source 0) (op) source 1 ...). */
void reduce_copy(const struct reduction *r, bool pre, bool post, int n_sources, void **sources,
                 int n_destinations, void **destinations, size_t count);

/* ---- kernel.c: one emulated block ---- */

struct block {
  const struct nccl_facts *facts;
  const struct nccl_own *own;
  const struct nccl_function_table *functions;
  const struct nccl_kernel_args *args;
  int channel_id, index;
  volatile bool aborted;

  /* from the communicator */
  int rank, n_ranks, p2p_chunk_size;
  const int *buff_sizes;
  volatile uint32_t *abort_flag;
  uint32_t *work_consumed;

  /* from the channel */
  char *channel;
  struct nccl_peer **peers;
  int ring_prev, ring_next, ring_index;
  const int *ring_user_ranks;
  struct nccl_tree tree, collnet_chain;
  struct nccl_direct collnet_direct;
};

/* A collective work item (ncclDevWorkColl), decoded. */
struct collective {
  int channel_lo, channel_hi;
  bool arg_is_ptr, net_reg_used, collnet_reg_used, is_one_rank;
  int root;
  char *sendbuff, *recvbuff;
  union {
    struct nccl_cbd cbd;
    struct nccl_collnet collnet;
  };
  uint64_t red_op_arg;
};

/* Called in every waiting loop; true when the communicator was aborted. */
bool give_up(struct block *b, unsigned *spins);

/* The part of a collective that one channel does (ncclCollCbdPart), in elements. */
struct part {
  ssize_t count; /* of the whole operation, per rank */
  ssize_t offset, length, chunk;
};
struct part collective_part(const struct block *b, const struct collective *c, int proto, int size);

/* ---- prims.c: send/receive primitives over connections ---- */

#define MAX_PEERS 7

enum buffer { BUF_NONE = -1, BUF_IN = 0, BUF_OUT = 1 };

/* What one primitive operation does. DIRECT_*: the NIC may use the user buffer. */
enum { RECV = 1, SEND = 2, DIRECT_RECV = 4 | RECV, DIRECT_SEND = 8 | SEND, POST_OP = 16 };

struct end {
  struct nccl_conn *conn;
  uint64_t step;
};

struct prims {
  struct block *b;
  struct reduction red;
  int proto;
  int slices; /* per chunk */
  int steps_per_slice;
  ssize_t step_elements;
  int n_recv, n_send;
  struct end recv[MAX_PEERS], send[MAX_PEERS];
  char *in, *out;
  bool is_p2p, recv_net, send_net, net_offload;
};

/* How to set up primitives. Peers are lists that may end early with -1. */
struct prims_config {
  int proto, slices, steps_per_slice;
  const int *recv_peers, *send_peers;
  int max_recv, max_send;
  int conn_index;
  char *in, *out;
  ssize_t step_elements; /* 0: from the buffer size */
  bool is_p2p;
  bool net_reg; /* the NIC may use the user buffers */
};

void prims_init(struct prims *p, struct block *b, struct reduction red,
                const struct prims_config *config);
void prims_op(struct prims *p, int flags, enum buffer src, enum buffer dst, ssize_t src_index,
              ssize_t dst_index, ssize_t count);
void prims_finish(struct prims *p);
/* Until the peer has room for a slice, until a slice from it is there. */
void prims_wait_for_credit(struct prims *p, const struct end *e);
void prims_wait_for_data(struct prims *p, const struct end *e);
/* Sends a part of the input to each peer, or receives the output's from them: the i-th peer's
 * begins i parts behind `at`, one more from the peer `own` on. There are `total` elements from `at`
 * on. */
void prims_scatter(struct prims *p, ssize_t at, ssize_t total, ssize_t part, int own);
void prims_gather(struct prims *p, ssize_t at, ssize_t total, ssize_t part, int own);
/* Steps in which the proxy works on user buffers by itself: hands them over, waits for them. */
void prims_give_steps(struct nccl_conn *conn, size_t steps);
void prims_await_steps(struct block *b, struct nccl_conn *conn, size_t steps);

/* prims_ll.c: prims_op for LL and LL128 */
void prims_ll_op(struct prims *p, int flags, enum buffer src, enum buffer dst, ssize_t src_index,
                 ssize_t dst_index, ssize_t count);

/* ---- ring.c: an operation on every chunk of a channel ---- */

/* Chunks begin at begin + i * stride. One that begins behind the end is empty, but it is a step. */
struct pass {
  struct block *b;
  struct reduction r;
  struct prims_config config;
  enum { PASS_OP, PASS_SCATTER, PASS_GATHER } kind;
  int flags; /* of prims_op */
  enum buffer src, dst;
  int own; /* of prims_scatter and prims_gather, whose parts are chunks; chunks_at_once of them */
  int chunks_at_once;
  ssize_t chunk, begin, stride, n_chunks, end;
};

/* Runs them all at the same time. */
void passes_run(struct pass *passes, int count);

/* ---- schedules ---- */

/* What a collective's channel does, with NCCL's protocol; schedules of one protocol alone are not
 * told another. */
typedef void schedule(struct block *b, const struct collective *c, struct reduction r, int proto);
/* ring.c */
schedule ring_allreduce, ring_allgather, ring_reducescatter, ring_broadcast, ring_reduce;
schedule tree_allreduce;
/* collnet.c */
schedule chain_allreduce, direct_allreduce;
/* pat.c */
schedule pat_allgather, pat_reducescatter;
/* p2p.c */
void p2p_run(struct block *b, struct nccl_work_p2p *works, int count);

#endif
