/* SPDX-License-Identifier: Apache-2.0 */
/* check: buffers of any size pass through a staging buffer of a few MiB. */
#include "tests/coll/check.h"

#include <stdlib.h>

#include "tests/coll/libs.h"
#include "tests/coll/message.h"
#include "tests/coll/pattern.h"

enum { STAGING_BYTES = 4 << 20 };
static _Alignas(64) char staging[STAGING_BYTES];
static struct pattern pattern;

struct check_buffers check_place(const struct operation_case *c, const struct job_gpu *gpu,
                                 bool is_in_place) {
  size_t size = element_infos[c->type].size_bytes;
  struct check_buffers b = { .send = gpu->send + PATTERN_GUARD_BYTES,
                             .recv = gpu->recv + PATTERN_GUARD_BYTES };
  b.begin = b.recv;
  b.end = b.recv + c->counts.recv * size;
  if (is_in_place) {
    size_t offset = operation_in_place_offset(c->operation, &c->counts, gpu->rank) * size;
    b.end = b.begin + c->counts.bytes;
    b.send = b.begin;
    if (c->operation == OPERATION_REDUCE_SCATTER)
      b.recv = b.begin + offset;
    else
      b.send = b.begin + offset;
  }
  return b;
}

static void fill(char *to, int rank, uint64_t place, size_t count) {
  size_t size = element_infos[pattern.type].size_bytes;
  for (size_t done = 0; done < count;) {
    size_t part = count - done < STAGING_BYTES / size ? count - done : STAGING_BYTES / size;
    pattern_fill(&pattern, rank, place + done, staging, part);
    CUDA(cudaMemcpy(to + done * size, staging, part * size, cudaMemcpyHostToDevice));
    done += part;
  }
}

static void fill_sent(const struct operation_case *c, const struct job_gpu *gpu, char *send) {
  size_t size = element_infos[c->type].size_bytes;
  if (!c->transfers)
    fill(send, gpu->rank, 0, c->counts.send);
  for (size_t i = 0; i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    if (t->is_send)
      fill(send + t->first * size, gpu->rank, t->place, t->count);
  }
}

void check_prepare(const struct job *job, const struct operation_case *c, bool is_in_place,
                   uint64_t seed) {
  unsigned char guard[PATTERN_GUARD_BYTES];
  pattern_fill_guard(guard);
  if (pattern.type != c->type || pattern.redop != c->redop || pattern.ranks != job->ranks)
    pattern_init(&pattern, c->type, c->redop, job->ranks, seed, job->contents);
  pattern_set_seed(&pattern, seed);
  for (int i = 0; i < job->options->gpus; i++) {
    const struct job_gpu *gpu = &job->gpus[i];
    struct check_buffers b = check_place(c, gpu, is_in_place);
    CUDA(cudaSetDevice(gpu->device));
    CUDA(cudaMemset(b.begin, 0x5a, (size_t)(b.end - b.begin)));
    CUDA(cudaMemcpy(b.begin - PATTERN_GUARD_BYTES, guard, sizeof guard, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b.end, guard, sizeof guard, cudaMemcpyHostToDevice));
    fill_sent(c, gpu, b.send);
    CUDA(cudaDeviceSynchronize());
  }
}

void check_fill_with_contents(const struct job *job) {
  size_t bytes = job_buffer_bytes(job);
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
    contents_copy(job->contents, done, staging, part);
    CUDA(cudaMemcpy(job->gpus[0].send + done, staging, part, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(job->gpus[0].recv + done, staging, part, cudaMemcpyHostToDevice));
    done += part;
  }
}

/* A few of these are enough; thousands would hide other messages. */
enum { SAY_MAX = 20 };

static void say_where(const struct operation_case *c, int rank, const struct operation_part *part,
                      size_t index, size_t in_staging) {
  static int said;
  if (said++ >= SAY_MAX)
    return;
  unsigned size = element_infos[c->type].size_bytes;
  uint64_t place = part->place + index - part->first;
  uint64_t got = element_load(staging, size, in_staging);
  uint64_t expected = part->source == PATTERN_REDUCED ? pattern_expected(&pattern, place)
                                                      : pattern_sent(&pattern, part->source, place);
  message_write("%s %s %s, %zu bytes: element %zu of rank %d is 0x%llx and should be 0x%llx",
                operation_infos[c->operation].name, element_infos[c->type].name,
                operation_redop_names[c->redop], c->counts.bytes, index, rank,
                (unsigned long long)got, (unsigned long long)expected);
}

static uint64_t count_wrong(const struct operation_case *c, int rank, const char *recv,
                            const struct operation_part *part) {
  size_t size = element_infos[c->type].size_bytes;
  uint64_t wrong = 0;
  for (size_t done = 0; done < part->length;) {
    size_t left = part->length - done, first = 0;
    size_t count = left < STAGING_BYTES / size ? left : STAGING_BYTES / size;
    CUDA(cudaMemcpy(staging, recv + (part->first + done) * size, count * size,
                    cudaMemcpyDeviceToHost));
    uint64_t more =
        pattern_compare(&pattern, part->source, part->place + done, staging, count, &first);
    if (more && !wrong)
      say_where(c, rank, part, part->first + done + first, first);
    wrong += more;
    done += count;
  }
  return wrong;
}

static uint64_t count_out_of_bounds(const char *at) {
  unsigned char guard[PATTERN_GUARD_BYTES];
  CUDA(cudaMemcpy(guard, at, sizeof guard, cudaMemcpyDeviceToHost));
  return pattern_compare_guard(guard);
}

/* At most as many as there are ranks or transfers. */
static int parts_of(const struct operation_case *c, int rank, int ranks,
                    struct operation_part *parts) {
  if (!c->transfers)
    return operation_parts(c->operation, &c->counts, rank, ranks, c->root, parts);
  int count = 0;
  for (size_t i = 0; i < c->transfer_count; i++) {
    const struct operation_transfer *t = &c->transfers[i];
    if (!t->is_send)
      parts[count++] = (struct operation_part){
        .source = t->peer, .place = t->place, .first = t->first, .length = t->count
      };
  }
  return count;
}

void check_compare(const struct job *job, const struct operation_case *c, bool is_in_place,
                   uint64_t *wrong, uint64_t *out_of_bounds) {
  struct operation_part *parts =
      message_allocate((size_t)job->ranks + c->transfer_count, sizeof *parts);
  for (int i = 0; i < job->options->gpus; i++) {
    const struct job_gpu *gpu = &job->gpus[i];
    struct check_buffers b = check_place(c, gpu, is_in_place);
    CUDA(cudaSetDevice(gpu->device));
    int count = parts_of(c, gpu->rank, job->ranks, parts);
    for (int part = 0; part < count; part++)
      *wrong += count_wrong(c, gpu->rank, b.recv, &parts[part]);
    *out_of_bounds +=
        count_out_of_bounds(b.begin - PATTERN_GUARD_BYTES) + count_out_of_bounds(b.end);
  }
  free(parts);
}
