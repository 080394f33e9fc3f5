/* SPDX-License-Identifier: Apache-2.0 */
/* User objects: reference counted resources whose lifetime a graph, and every executable graph made
 * from it, prolongs. The destructor runs when the last reference goes, on the thread that drops it,
 * which may be a stream's; like on a GPU it must not call CUDA. */
#include <stdlib.h>

#include "tests/fake_cuda/runtime/graph.h"

struct CUuserObject_st {
  void *arg;
  cudaHostFn_t destroy;
  int references;
};

struct user_object_list {
  cudaUserObject_t object;
  unsigned count;
  struct user_object_list *next;
};

static void object_release(cudaUserObject_t object, unsigned count) {
  if (__atomic_sub_fetch(&object->references, (int)count, __ATOMIC_ACQ_REL))
    return;
  object->destroy(object->arg);
  free(object);
}

struct user_object_list *user_objects_copy(const struct user_object_list *list) {
  struct user_object_list *copy = NULL;
  for (; list; list = list->next) {
    struct user_object_list *entry = malloc(sizeof *entry);
    *entry = (struct user_object_list){ list->object, 1, copy };
    __atomic_add_fetch(&list->object->references, 1, __ATOMIC_RELAXED);
    copy = entry;
  }
  return copy;
}

void user_objects_free(struct user_object_list *list) {
  while (list) {
    struct user_object_list *next = list->next;
    object_release(list->object, list->count);
    free(list);
    list = next;
  }
}

EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *arg, cudaHostFn_t destroy,
                                        unsigned references, unsigned flags) {
  if (!object || !destroy || !references || flags != cudaUserObjectNoDestructorSync)
    return error_set(cudaErrorInvalidValue);
  *object = malloc(sizeof **object);
  **object =
      (struct CUuserObject_st){ .arg = arg, .destroy = destroy, .references = (int)references };
  return cudaSuccess;
}

EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                             unsigned count, unsigned flags) {
  if (!graph || !object || !count)
    return error_set(cudaErrorInvalidValue);
  if (!(flags & cudaGraphUserObjectMove))
    __atomic_add_fetch(&object->references, (int)count, __ATOMIC_RELAXED);
  pthread_mutex_lock(&graph_lock);
  struct user_object_list *entry = graph->objects;
  while (entry && entry->object != object)
    entry = entry->next;
  if (entry) {
    entry->count += count;
  } else {
    entry = malloc(sizeof *entry);
    *entry = (struct user_object_list){ object, count, graph->objects };
    graph->objects = entry;
  }
  pthread_mutex_unlock(&graph_lock);
  return cudaSuccess;
}
