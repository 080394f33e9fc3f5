/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts and rules per NCCL release: the one place to extend for a new one. Each release has the
 * structures it changed and a row in the table. Names in comments are NCCL's. */
#include <stdio.h>

#include "tests/fake_cuda/nccl/facts.h"

/* Members that only matter for the position of what follows them. */
struct nvls_old {
  int out, n_heads, head_rank, up[32], down, tree_up, tree_down[3], node,
      n_nodes; /* ncclNvls, 2.22 */
};
struct nvls {
  int out, n_heads, head_rank, up[32], down, tree_up, tree_down[3]; /* ncclNvls */
};

/* ---- 2.22.3: src/include/device.h at tag v2.22.3-1, lines 146 to 409 ---- */

struct ring_222 {
  int prev, next, *user_ranks, index;
};

struct channel_222 {
  struct nccl_peer **peers;
  struct ring_222 ring;
  struct nccl_tree tree, collnet_chain;
  struct nccl_direct collnet_direct;
  struct nvls_old nvls;
  uint32_t *work_fifo_done;
} __attribute__((aligned(16)));

struct comm_222 { /* ncclDevComm */
  int rank, n_ranks, node, n_nodes, buff_sizes[3], p2p_chunk_size;
  uint32_t *work_consumed;
  int *coll_net_dense_to_user_rank;
  volatile uint32_t *abort_flag;
  void *channels;
};

struct comm_channels_222 { /* ncclDevCommAndChannels, MAXCHANNELS 32 */
  struct comm_222 comm;
  struct channel_222 channels[32];
} __attribute__((aligned(16)));

struct coll_222 {
  uint32_t bits, root;
  void *recvbuff, *sendbuff;
  struct nccl_cbd cbd;
  uint64_t red_op_arg;
} __attribute__((aligned(16)));

struct coll_reg_222 {
  struct coll_222 coll;
  void *dn_inputs[8], *dn_outputs[8], *up_outputs[8];
} __attribute__((aligned(16)));

/* ---- 2.29.7: src/include/device.h at tag v2.29.7-1, lines 171 to 465 ---- */

struct ring_229 {
  int prev, next, *user_ranks, *rank_to_index, index;
};

struct channel_229 {
  struct nccl_peer **peers;
  struct ring_229 ring;
  struct nccl_tree tree, collnet_chain;
  struct nccl_direct collnet_direct;
  struct nvls nvls;
  uint32_t *work_fifo_done;
  uint64_t work_counter;
} __attribute__((aligned(16)));

struct comm_229 { /* ncclKernelComm */
  int rank, n_ranks, node, n_nodes, buff_sizes[3], p2p_chunk_size, is_all_nvlink;
  int *coll_net_dense_to_user_rank;
  volatile uint32_t *abort_flag;
  void *channels;
  int *rank_to_local_rank;
  void *work_started, *work_completed;
};

struct comm_channels_229 {
  struct comm_229 comm;
  struct channel_229 channels[NCCL_MAX_CHANNELS];
} __attribute__((aligned(16)));

struct coll_229 {
  uint32_t bits, root;
  void *recvbuff, *sendbuff;
  uintptr_t sendbuff_offset, recvbuff_offset;
  uintptr_t *sendbuff_rmt_addrs, *recvbuff_rmt_addrs;
  struct nccl_cbd cbd;
  uint64_t red_op_arg;
} __attribute__((aligned(16)));

struct coll_reg_229 {
  struct coll_229 coll;
  void *dn_inputs[8], *dn_outputs[8], *up_outputs[8];
} __attribute__((aligned(16)));

/* ---- the table ---- */

#define COMM_OFFSETS(comm)                                                                         \
  .comm_n_ranks = offsetof(struct comm, n_ranks),                                                  \
  .comm_buff_sizes = offsetof(struct comm, buff_sizes),                                            \
  .comm_p2p_chunk_size = offsetof(struct comm, p2p_chunk_size),                                    \
  .comm_abort_flag = offsetof(struct comm, abort_flag)

#define CHANNEL_OFFSETS(all, channel)                                                              \
  .channels = offsetof(struct all, channels), .channel_size = sizeof(struct channel),              \
  .ring_prev = offsetof(struct channel, ring.prev),                                                \
  .ring_next = offsetof(struct channel, ring.next),                                                \
  .ring_user_ranks = offsetof(struct channel, ring.user_ranks),                                    \
  .ring_index = offsetof(struct channel, ring.index), .tree = offsetof(struct channel, tree),      \
  .collnet_chain = offsetof(struct channel, collnet_chain),                                        \
  .collnet_direct = offsetof(struct channel, collnet_direct)

#define COLL_OFFSETS(coll, reg)                                                                    \
  .coll_size = sizeof(struct coll), .coll_reg_size = sizeof(struct reg),                           \
  .recvbuff = offsetof(struct coll, recvbuff), .sendbuff = offsetof(struct coll, sendbuff),        \
  .cbd = offsetof(struct coll, cbd), .red_op_arg = offsetof(struct coll, red_op_arg)

static const struct nccl_facts table[] = {
  {
      .release = "2.22.3",
      .version = 22203,
      COMM_OFFSETS(comm_222),
      .comm_work_consumed = offsetof(struct comm_222, work_consumed),
      CHANNEL_OFFSETS(comm_channels_222, channel_222),
      COLL_OFFSETS(coll_222, coll_reg_222),
      .collnet_reg = { 25, 2 },    /* regUsed is NCCL_COLLNET_REG_BUFFER, 3 */
      .collnet_reg_step = 1 << 29, /* NCCL_MAX_COLLNET_SIZE */
      .part_bit_reversed = true,
      .user_buffer_one_step = true,
  },
  {
      .release = "2.29.7",
      .version = 22907,
      COMM_OFFSETS(comm_229),
      .comm_work_consumed = ABSENT,
      CHANNEL_OFFSETS(comm_channels_229, channel_229),
      COLL_OFFSETS(coll_229, coll_reg_229),
      .net_reg_used = { 26, 1 },
      .is_one_rank = { 30, 1 },
      .collnet_reg = { 26, 1 },
      .direct_reduce = true,
      .direct_broadcast = true,
      .post_div_sign_in_arg = true,
      .has_fp8 = true,
      .has_pat = true,
      .has_all_gather_v = true,
  },
};

#define ROWS (sizeof table / sizeof *table)

const struct nccl_facts *nccl_facts_find(int version) {
  for (size_t i = 0; i < ROWS; i++) {
    if (table[i].version == version)
      return &table[i];
  }
  return NULL;
}

void nccl_facts_list(char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (size_t i = 0; i < ROWS && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", table[i].release);
}
