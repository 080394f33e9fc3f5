/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a group. NCCL registers it without saying what for, so at first no peer can write
 * there, and what arrives for it is copied. The first call that receives into it has it registered
 * for that as well, by a thread of its own: a driver takes milliseconds, and NCCL's progress waits
 * for nothing. */
#include <errno.h>
#include <stdlib.h>

#include "common/thread.h"
#include "net_plugin/collnet/group.h"
#include "net_plugin/connection/connection.h"
#include "net_plugin/lane/lane_memory.h"

static int wrap(int rc, const struct memory *memory, struct collnet_memory **out) {
  struct collnet_memory *wrapped = rc ? NULL : calloc(1, sizeof(*wrapped));
  if (!rc && !wrapped) {
    memory_deregister(memory);
    rc = -ENOMEM;
  }
  if (wrapped) {
    wrapped->memory = memory;
  }
  *out = wrapped;
  return rc;
}

int collnet_register(struct collnet_group *group, void *data, size_t bytes, int type,
                     struct collnet_memory **out) {
  const struct memory *memory = NULL;
  int rc = memory_register(data, bytes, (enum memory_type)type, MEMORY_SENT, &memory);
  rc = wrap(rc, memory, out);
  if (type != MEMORY_HOST) {
    return rc;
  }
  if (rc) {
    *out = &group->spare_memory;
  } else {
    (*out)->data = data;
    (*out)->bytes = bytes;
  }
  return 0;
}

int collnet_register_dma_buf(struct collnet_group *group, void *data, size_t bytes, size_t offset,
                             int fd, struct collnet_memory **out) {
  (void)group;
  const struct memory *memory = NULL;
  int rc = memory_register_dma_buf(data, bytes, offset, fd, MEMORY_SENT, &memory);
  return wrap(rc, memory, out);
}

static void *make_target(void *argument) {
  struct collnet_memory *memory = argument;
  const struct memory *target = NULL;
  if (memory_register(memory->data, memory->bytes, MEMORY_HOST, MEMORY_RECEIVED, &target) == 0) {
    atomic_store_explicit(&memory->target, target, memory_order_release);
  }
  return NULL;
}

void group_receives_into(struct collnet_memory *memory) {
  if (memory && memory->data && !memory->has_worker && lane_memory_is_wanted()) {
    memory->has_worker = thread_start(&memory->worker, make_target, memory) == 0;
  }
}

const struct memory *group_memory(const struct collnet_memory *memory, bool is_send) {
  if (!memory) {
    return NULL;
  }
  const struct memory *target =
      is_send ? NULL : atomic_load_explicit(&memory->target, memory_order_acquire);
  return target ? target : memory->memory;
}

/* Until the memory is gone no new call uses it: that is NCCL's part. */
static void wait_for_worker(struct collnet_group *group, struct collnet_memory *memory) {
  pthread_mutex_lock(&group->lock);
  bool has_worker = memory->has_worker;
  pthread_mutex_unlock(&group->lock);
  if (has_worker) {
    pthread_join(memory->worker, NULL);
  }
}

void collnet_deregister(struct collnet_group *group, struct collnet_memory *memory) {
  if (!memory) {
    return;
  }
  wait_for_worker(group, memory);
  const struct memory *target = atomic_load(&memory->target);
  pthread_mutex_lock(&group->lock);
  for (size_t i = 0; i < collnet_path_count(group); i++) {
    if (group->paths[i].connection) {
      connection_withdraw(group->paths[i].connection, memory->memory);
      if (target) {
        connection_withdraw(group->paths[i].connection, target);
      }
    }
  }
  for (unsigned i = 0; i < COLLNET_REQUESTS; i++) {
    const struct collnet_request *request = &group->requests[i];
    bool is_using = request->call.send_memory == memory || request->call.recv_memory == memory;
    if (is_using && request->is_in_use && request->finished < request->call.count) {
      group->error = -ECANCELED;
    }
  }
  pthread_mutex_unlock(&group->lock);
  if (memory != &group->spare_memory) {
    memory_deregister(target);
    memory_deregister(memory->memory);
    free(memory);
  }
}
