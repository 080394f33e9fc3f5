/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what the emulated kernels must know about NCCL's device-visible data, per NCCL release.
 * Owns: a constant table.  Threads: any.  Blocks: never.  Fails: an unknown release has no facts.
 *
 * Everything that depends on the NCCL version is in this header and in the table in facts.c.
 * Names in comments are NCCL's; the file meant is src/include/device.h unless another is named. */
#ifndef FAKE_CUDA_NCCL_FACTS_H
#define FAKE_CUDA_NCCL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- the same in every supported release ---- */

#define NCCL_STEPS 8
#define NCCL_MAX_CHANNELS 64

enum nccl_proto { PROTO_LL, PROTO_LL128, PROTO_SIMPLE, PROTO_COUNT };
enum nccl_algo {
  ALGO_TREE,
  ALGO_RING,
  ALGO_COLLNET_DIRECT,
  ALGO_COLLNET_CHAIN,
  ALGO_NVLS,
  ALGO_NVLS_TREE,
  ALGO_PAT
};
enum nccl_coll {
  COLL_BROADCAST,
  COLL_REDUCE,
  COLL_ALLGATHER,
  COLL_REDUCESCATTER,
  COLL_ALLREDUCE,
  COLL_SENDRECV,
  COLL_ALLGATHERV
};
enum nccl_type {
  TYPE_I8,
  TYPE_U8,
  TYPE_I32,
  TYPE_U32,
  TYPE_I64,
  TYPE_U64,
  TYPE_F16,
  TYPE_F32,
  TYPE_F64,
  TYPE_BF16,
  TYPE_F8E4M3,
  TYPE_F8E5M2,
  TYPE_COUNT
};
enum nccl_redop { OP_SUM, OP_PROD, OP_MINMAX, OP_PREMULSUM, OP_SUMPOSTDIV, OP_COUNT };

/* ncclConnInfo.flags: NCCL_DIRECT_NIC */
enum { CONN_NIC = 4 };

/* ncclConnFifo (src/include/collectives.h) */
struct nccl_fifo {
  int mode; /* NCCL_MODE_* */
  int offset;
  ssize_t size;
  void *ptr;
};
enum { FIFO_MODE_NORMAL, FIFO_MODE_OFFSET, FIFO_MODE_PTR };

/* ncclConnInfo */
struct nccl_conn {
  char *buffs[3];
  void *mhandles[3];
  uint64_t *tail;
  uint64_t *head;
  int flags;
  int shared;
  int step_size;
  void **ptr_exchange;
  uint64_t *red_op_arg_exchange;
  struct nccl_fifo *fifo;
  uint64_t step;
  uint64_t ll_last_cleaning;
  struct {
    int type, version;
    void *handle;
    size_t size;
    int needs_proxy_progress;
  } net_device; /* ncclNetDeviceHandle_v7_t, src/include/net_device.h */
};
_Static_assert(sizeof(struct nccl_conn) == 152, "ncclConnInfo");

/* ncclDevChannelPeer */
struct nccl_peer {
  struct nccl_conn send[2];
  struct nccl_conn recv[2];
};

/* ncclTree */
struct nccl_tree {
  int depth, up, down[3];
};

/* ncclDirect: up and down are the heads of this host and the ranks below this head; they end early
 * with -1. head_rank is -1 for a rank that is no head. */
struct nccl_direct {
  int depth, out, n_heads, head_rank, shift, heads[8], up[7], down[7];
};

/* ncclDevWorkBatch */
struct nccl_batch {
  uint32_t next_jump : 14, next_extends : 1, work_type : 2, func_id : 15;
  uint32_t offset_base;
  uint64_t offset_bitset;
};
enum { WORK_P2P, WORK_COLL, WORK_COLL_REG, WORK_BCAST };

/* ncclDevKernelArgs; the batches follow directly. */
struct nccl_kernel_args {
  char *comm;
  uint64_t channel_mask;
  uint8_t work_storage_type;
  uint32_t work_mask;
  char *work_buf;
} __attribute__((aligned(16)));
enum { STORAGE_ARGS, STORAGE_FIFO, STORAGE_PERSISTENT };
_Static_assert(sizeof(struct nccl_kernel_args) == 32, "ncclDevKernelArgs");

/* ncclDevWorkP2p */
struct nccl_work_p2p {
  char *send_addr, *recv_addr;
  size_t send_bytes, recv_bytes;
  int send_rank, recv_rank;
  uint8_t n_p2p_channels, channel_base;
  uint8_t n_send_channels, n_recv_channels;
  uint8_t send_chunk_size, recv_chunk_size; /* u32fp8 coded */
  uint8_t flags; /* bits 0 and 1: send, recv use LL; 2 and 3: the NIC uses the user buffer */
} __attribute__((aligned(16)));
_Static_assert(sizeof(struct nccl_work_p2p) == 48, "ncclDevWorkP2p");

/* The cbd member of ncclDevWorkColl */
struct nccl_cbd {
  size_t count_lo, count_mid, count_hi;
  uint64_t chunk_grains_lo : 21, chunk_grains_mid : 21, chunk_grains_hi : 21;
};

/* The collnet member of ncclDevWorkColl, in the place of cbd: channels take chunks by turns. */
struct nccl_collnet {
  size_t count; /* elements of the whole operation */
  uint32_t chunk_count;
};

/* ---- what differs ---- */

/* A bit field: position and width, width 0 if the release does not have it. */
struct nccl_bits {
  uint8_t shift, width;
};

#define ABSENT (-1)

struct nccl_facts {
  const char *release;
  int version; /* NCCL_VERSION_CODE: only releases whose kernels have been run here have a row */

  /* Offsets in ncclDevComm / ncclKernelComm */
  int comm_n_ranks, comm_buff_sizes, comm_p2p_chunk_size, comm_abort_flag;
  int comm_work_consumed;
  /* The channel array behind it (…CommAndChannels) */
  int channels, channel_size;

  /* Offsets in ncclDevChannel */
  int ring_prev, ring_next, ring_user_ranks, ring_index, tree;
  int collnet_chain, collnet_direct;

  /* ncclDevWorkColl */
  int coll_size, coll_reg_size;
  int recvbuff, sendbuff, cbd, red_op_arg;
  struct nccl_bits net_reg_used, is_one_rank; /* in the first word */
  struct nccl_bits collnet_reg;               /* all set: CollNet works on user buffers */

  /* Behaviour of the kernels (src/device) */
  bool part_bit_reversed;    /* ncclP2pChannelToPart reverses bits */
  bool direct_reduce;        /* reducing steps may use registered buffers too */
  bool direct_broadcast;     /* so may ring broadcast */
  bool user_buffer_one_step; /* a send from a registered net buffer posts one empty step */
  size_t collnet_reg_step;   /* bytes per step of CollNet on user buffers, 0: one step */

  bool post_div_sign_in_arg; /* SumPostDiv: argument is divisor*2+signed, and functions are unsigned
                              */

  /* Which rows ncclDevFuncId counts */
  bool has_fp8, has_pat, has_all_gather_v;
};

/* The row for a version code, or NULL. */
const struct nccl_facts *nccl_facts_find(int version);
/* "2.22.3, 2.29.7": the releases that have a row. */
void nccl_facts_list(char *text, size_t size);

#endif
