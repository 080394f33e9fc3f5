/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel main loop (ncclKernelMain and loadWorkBatchToShmem of src/device/common.h).
 *
 * The name of an NCCL kernel does not say what it does: each batch names its function through
 * funcId, an index into the function table. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_cuda/nccl/block.h"
#include "tests/fake_cuda/runtime/launch.h"
#include "tests/fake_cuda/runtime/device.h"

#define WORK_STORAGE (32 << 10) /* at least ncclMaxDevWorkBatchBytes, 16 KiB on sm_90 */

/* Facts and function table of the NCCL library in this process; facts is NULL if it is unknown. */
static struct {
  pthread_once_t once;
  const void *kernel_address;
  const struct nccl_facts *facts;
  const struct nccl_own *own;
  struct nccl_function_table functions;
} nccl = { .once = PTHREAD_ONCE_INIT };

/* Asks the library that contains a kernel, or else the program itself, for its version, and for
 * what linked/own.c gives. */
static int ask_library(const void *kernel_address, const struct nccl_own **own) {
  Dl_info info;
  int version = 0;
  void *library = NULL;
  if (dladdr(kernel_address, &info))
    library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  void *where = library ? library : RTLD_DEFAULT;
  int (*get_version)(int *) = (int (*)(int *))dlsym(where, "ncclGetVersion");
  *own = dlsym(where, "fake_cuda_nccl_own");
  if (get_version && *own)
    get_version(&version);
  if (library)
    dlclose(library);
  return version;
}

static void select_facts(void) {
  int version = ask_library(nccl.kernel_address, &nccl.own);
  nccl.facts = nccl_facts_find(version);
  if (!nccl.facts) {
    char supported[128];
    nccl_facts_list(supported, sizeof supported);
    LOG(LOG_ERROR,
        "NCCL %d.%d.%d is not supported by the emulated GPU, its kernels are not run; supported "
        "releases: %s",
        version / 10000, version / 100 % 100, version % 100, supported);
    return;
  }
  nccl_functions_build(&nccl.functions, nccl.facts, nccl.own->row_to_id);
  LOG(LOG_INFO, "NCCL %s: %d device functions", nccl.facts->release, nccl.functions.count);
}

static inline void cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* How often a waiting kernel spins, then yields, before it sleeps between looks, the longer the
 * more often it has. Threads of ranks, proxies and engines share few CPUs: who waits long must not
 * take their time. */
enum { SPINS = 64, YIELDS = 256, SLEEP_NS = 10000, LONGEST_SLEEP_NS = 100000 };

bool give_up(struct block *b, unsigned *spins) {
  if (b->aborted) /* the schedule goes on to its end, and waits nowhere */
    return true;
  if (++*spins < SPINS) {
    cpu_pause();
    return false;
  }
  if (*spins < SPINS + YIELDS) {
    sched_yield();
  } else {
    unsigned sleeps = (*spins - SPINS - YIELDS) / 32;
    const struct timespec pause = { .tv_nsec =
                                        MIN(SLEEP_NS * (1 + (long)sleeps), LONGEST_SLEEP_NS) };
    nanosleep(&pause, NULL);
  }
  if (!(*spins & 63) && b->abort_flag && *b->abort_flag)
    b->aborted = true;
  return b->aborted;
}

/* ---- decoding ---- */

static void *pointer_at(const char *base, int offset) {
  void *p = NULL;
  if (offset != ABSENT)
    memcpy(&p, base + offset, sizeof p);
  return p;
}

static int int_at(const char *base, int offset) {
  int v = 0;
  if (offset != ABSENT)
    memcpy(&v, base + offset, sizeof v);
  return v;
}

static unsigned bits_of(uint32_t word, struct nccl_bits bits) {
  return bits.width ? word >> bits.shift & ((1u << bits.width) - 1) : 0;
}

static void block_init(struct block *b, const struct nccl_kernel_args *args, int channel_id,
                       int index) {
  const struct nccl_facts *f = nccl.facts;
  char *comm = args->comm;
  memset(b, 0, sizeof *b);
  b->facts = f;
  b->own = nccl.own;
  b->functions = &nccl.functions;
  b->args = args;
  b->channel_id = channel_id;
  b->index = index;
  b->rank = int_at(comm, 0);
  b->n_ranks = int_at(comm, f->comm_n_ranks);
  b->buff_sizes = (const int *)(comm + f->comm_buff_sizes);
  b->p2p_chunk_size = int_at(comm, f->comm_p2p_chunk_size);
  b->abort_flag = pointer_at(comm, f->comm_abort_flag);
  b->work_consumed = pointer_at(comm, f->comm_work_consumed);
  b->channel = comm + f->channels + channel_id * f->channel_size;
  b->peers = pointer_at(b->channel, 0);
  b->ring_prev = int_at(b->channel, f->ring_prev);
  b->ring_next = int_at(b->channel, f->ring_next);
  b->ring_index = int_at(b->channel, f->ring_index);
  b->ring_user_ranks = pointer_at(b->channel, f->ring_user_ranks);
  memcpy(&b->tree, b->channel + f->tree, sizeof b->tree);
  memcpy(&b->collnet_chain, b->channel + f->collnet_chain, sizeof b->collnet_chain);
  memcpy(&b->collnet_direct, b->channel + f->collnet_direct, sizeof b->collnet_direct);
}

static struct collective decode_collective(const struct nccl_facts *f, const char *work) {
  struct collective c;
  uint32_t word;
  memcpy(&word, work, sizeof word);
  c.channel_lo = word & 0xff;
  c.channel_hi = word >> 8 & 0xff;
  c.arg_is_ptr = word >> 24 & 1;
  c.net_reg_used = bits_of(word, f->net_reg_used);
  c.collnet_reg_used = bits_of(word, f->collnet_reg) == (1u << f->collnet_reg.width) - 1;
  c.is_one_rank = bits_of(word, f->is_one_rank);
  c.root = int_at(work, 4);
  c.recvbuff = pointer_at(work, f->recvbuff);
  c.sendbuff = pointer_at(work, f->sendbuff);
  memcpy(&c.cbd, work + f->cbd, sizeof c.cbd);
  c.red_op_arg = (uintptr_t)pointer_at(work, f->red_op_arg);
  return c;
}

struct part collective_part(const struct block *b, const struct collective *c, int proto,
                            int size) {
  static const int grain_bytes[] = { 16, 1920, 512 }; /* ncclProtoGrainSize */
  ssize_t grain = grain_bytes[proto] / size;
  ssize_t lo = (ssize_t)c->cbd.count_lo;
  ssize_t mid = (ssize_t)c->cbd.count_mid;
  ssize_t hi = (ssize_t)c->cbd.count_hi;
  ssize_t middle_channels = c->channel_hi - c->channel_lo - 1;
  struct part part = { .count = lo + mid * middle_channels + hi };
  if (b->channel_id == c->channel_lo) {
    part.offset = 0;
    part.length = lo;
    part.chunk = (ssize_t)c->cbd.chunk_grains_lo * grain;
  } else if (b->channel_id == c->channel_hi) {
    part.offset = lo + middle_channels * mid;
    part.length = hi;
    part.chunk = (ssize_t)c->cbd.chunk_grains_hi * grain;
  } else {
    part.offset = lo + (b->channel_id - c->channel_lo - 1) * mid;
    part.length = mid;
    part.chunk = (ssize_t)c->cbd.chunk_grains_mid * grain;
  }
  return part;
}

/* ---- work batches ---- */

struct works {
  int count, type, size, function;
  char data[WORK_STORAGE] __attribute__((aligned(16)));
};

static int work_size(const struct nccl_facts *f, int type) {
  switch (type) {
  case WORK_P2P:
    return sizeof(struct nccl_work_p2p);
  case WORK_COLL:
    return f->coll_size;
  case WORK_COLL_REG:
    return f->coll_reg_size;
  default:
    return 48; /* ncclDevWorkBcast */
  }
}

/* Copies one item; the fifo wraps around at any multiple of 16 bytes. */
static void copy_work(const struct nccl_kernel_args *args, uint32_t offset, int size, char *to) {
  for (int i = 0; i < size; i += 16) {
    const char *from = args->work_storage_type == STORAGE_ARGS
                           ? (const char *)args + offset + i
                           : args->work_buf + ((offset + (uint32_t)i) & args->work_mask);
    memcpy(to + i, from, 16);
  }
}

/* Loads a batch and those that extend it. Returns the index of the next batch, or -1. */
static int load_works(struct block *b, int index, struct works *w) {
  const struct nccl_batch *batches = (const struct nccl_batch *)(b->args + 1);
  const struct nccl_batch *batch;
  w->count = 0;
  for (;;) {
    batch = &batches[index];
    w->type = batch->work_type;
    w->function = batch->func_id;
    w->size = work_size(b->facts, w->type);
    for (uint64_t set = batch->offset_bitset; set; set &= set - 1) {
      if ((w->count + 1) * w->size > WORK_STORAGE)
        break;
      uint32_t offset = batch->offset_base + (uint32_t)(__builtin_ctzll(set) * w->size);
      copy_work(b->args, offset, w->size, w->data + w->count * w->size);
      w->count++;
    }
    if (b->work_consumed && b->args->work_storage_type == STORAGE_FIFO && batch->offset_bitset) {
      int items = 64 - __builtin_clzll(batch->offset_bitset);
      uint32_t consumed = batch->offset_base + (uint32_t)(items * w->size);
      __atomic_store_n(&b->work_consumed[b->channel_id], consumed, __ATOMIC_RELEASE);
    }
    if (!batch->next_extends)
      break;
    index += batch->next_jump;
  }
  return batch->next_jump ? index + batch->next_jump : -1;
}

/* The reduction of a function with the argument of an item. */
static struct reduction reduction_of(const struct block *b, const struct nccl_function *f,
                                     const struct collective *c) {
  int type = f->type < 0 ? TYPE_I8 : f->type;
  struct reduction r = { .type = type,
                         .op = f->op < 0 ? OP_SUM : f->op,
                         .size = nccl_type_size(type),
                         .arg = c->red_op_arg };
  if (c->arg_is_ptr && r.op >= OP_MINMAX) {
    r.arg = 0;
    memcpy(&r.arg, (void *)c->red_op_arg, r.op == OP_SUMPOSTDIV ? 8 : (size_t)r.size);
  }
  if (r.op == OP_SUMPOSTDIV && !b->facts->post_div_sign_in_arg)
    r.arg = r.arg << 1 | (type == TYPE_I8 || type == TYPE_I32 || type == TYPE_I64);
  return r;
}

static const struct {
  int algo, coll;
  schedule *run;
} schedules[] = {
  { ALGO_RING, COLL_ALLREDUCE, ring_allreduce },
  { ALGO_RING, COLL_ALLGATHER, ring_allgather },
  { ALGO_RING, COLL_REDUCESCATTER, ring_reducescatter },
  { ALGO_RING, COLL_BROADCAST, ring_broadcast },
  { ALGO_RING, COLL_REDUCE, ring_reduce },
  { ALGO_TREE, COLL_ALLREDUCE, tree_allreduce },
  { ALGO_COLLNET_CHAIN, COLL_ALLREDUCE, chain_allreduce },
  { ALGO_COLLNET_DIRECT, COLL_ALLREDUCE, direct_allreduce },
  { ALGO_PAT, COLL_ALLGATHER, pat_allgather },
  { ALGO_PAT, COLL_REDUCESCATTER, pat_reducescatter },
};

/* Runs one collective item; false if its function is not emulated. */
static bool run_collective(struct block *b, const struct nccl_function *f,
                           const struct collective *c) {
  if (f->type >= TYPE_F8E4M3)
    return false; /* 8-bit floating point */
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
    if (schedules[i].algo == f->algo && schedules[i].coll == f->coll) {
      schedules[i].run(b, c, reduction_of(b, f, c), f->proto);
      return true;
    }
  }
  return false;
}

/* Runs the items of one batch; false if the function is not emulated. */
static bool run_works(struct block *b, struct works *w) {
  char name[96];
  if (w->function >= b->functions->count) {
    LOG(LOG_ERROR, "function id %d is out of range", w->function);
    return false;
  }
  const struct nccl_function *f = &b->functions->functions[w->function];
  nccl_function_name(name, sizeof name, f);
  LOG(LOG_DETAIL, "channel %d runs %s, %d items of type %d", b->channel_id, name, w->count,
      w->type);
  if (f->coll == COLL_SENDRECV && w->type == WORK_P2P) {
    p2p_run(b, (struct nccl_work_p2p *)w->data, w->count);
    return true;
  }
  for (int i = 0; i < w->count; i++) {
    struct collective c = decode_collective(b->facts, w->data + i * w->size);
    if (w->type > WORK_COLL_REG || !run_collective(b, f, &c)) {
      LOG(LOG_ERROR, "function %s is not emulated", name);
      return false;
    }
  }
  return true;
}

/* The work of one channel; false if something is not emulated. */
static bool run_block(struct block *b) {
  struct works *w = malloc(sizeof *w);
  int index = b->index;
  bool ok = true;
  while (index >= 0 && ok && !b->aborted) {
    index = load_works(b, index, w);
    ok = run_works(b, w);
  }
  free(w);
  return ok;
}

static void *block_thread(void *arg) {
  return run_block(arg) ? arg : NULL;
}

/* ---- entry ---- */

bool nccl_kernel_is(const char *name) {
  return strstr(name, "ncclDevKernel_") != NULL;
}

bool nccl_kernel_run(const struct kernel *kernel, unsigned grid, const void *arg_bytes) {
  const struct nccl_kernel_args *args = arg_bytes;
  struct block blocks[NCCL_MAX_CHANNELS];
  pthread_t threads[NCCL_MAX_CHANNELS];
  nccl.kernel_address = kernel->host_function;
  pthread_once(&nccl.once, select_facts);
  if (!nccl.facts)
    return false;
  unsigned n = MIN(grid, (unsigned)NCCL_MAX_CHANNELS);
  uint64_t mask = args->channel_mask;
  for (unsigned i = 0; i < n; i++, mask &= mask - 1) {
    block_init(&blocks[i], args, __builtin_ctzll(mask), (int)i);
    if (i)
      pthread_create(&threads[i], NULL, block_thread, &blocks[i]);
  }
  bool ok = run_block(&blocks[0]);
  for (unsigned i = 1; i < n; i++) {
    void *result;
    pthread_join(threads[i], &result);
    ok = ok && result;
  }
  return ok;
}
