/* SPDX-License-Identifier: Apache-2.0 */
/* The stratus plugin ($STRATUS_TEST_NET_PLUGIN) with one version of the interface, VERSION, and
 * nothing else; if IS_FAULTY, with the fault that $STRATUS_TEST_FAULT names:
 *   refuse  two of three isend and irecv have no room
 *   flip    every tenth message received has one bit changed
 *   fail    the test() of the hundredth completed request fails */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/abi/net_abi.h"

#define JOIN(a, b) a##b
#define JOIN_VALUES(a, b) JOIN(a, b)
#define TEXT(a) #a
#define TEXT_OF_VALUE(a) TEXT(a)
#define TABLE JOIN_VALUES(net_v, VERSION)
#define EXPORTED "ncclNetPlugin_v" TEXT_OF_VALUE(VERSION)

/* Not by its name in net_abi.h, where it is constant. */
extern struct TABLE exported __asm__(EXPORTED);
__attribute__((visibility("default"))) struct TABLE exported;

#if IS_FAULTY
enum { REQUESTS_MAX = 1024 };
static struct TABLE real;
static struct {
  void *request;
  uint8_t *data;
} receives[REQUESTS_MAX];
static unsigned calls, completions;

static bool has_fault(const char *name) {
  const char *fault = getenv("STRATUS_TEST_FAULT");
  return fault && strcmp(fault, name) == 0;
}

static enum nccl_result isend(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                              void *phandle, void **request) {
  if (has_fault("refuse") && ++calls % 3 != 0) {
    *request = NULL;
    return NCCL_SUCCESS;
  }
  return real.isend(comm, data, bytes, tag, mhandle, phandle, request);
}

static enum nccl_result irecv(void *comm, int count, void **data, size_t *bytes, int *tags,
                              void **mhandles, void **phandles, void **request) {
  if (has_fault("refuse") && ++calls % 3 != 0) {
    *request = NULL;
    return NCCL_SUCCESS;
  }
  enum nccl_result result = real.irecv(comm, count, data, bytes, tags, mhandles, phandles, request);
  for (int i = 0; i < REQUESTS_MAX && *request; i++) {
    if (!receives[i].request) {
      receives[i].request = *request;
      receives[i].data = data[0];
      break;
    }
  }
  return result;
}

static enum nccl_result test(void *request, int *is_done, int *bytes) {
  enum nccl_result result = real.test(request, is_done, bytes);
  if (result || !*is_done) {
    return result;
  }
  completions++;
  for (int i = 0; i < REQUESTS_MAX; i++) {
    if (receives[i].request == request) {
      receives[i].data[0] ^= has_fault("flip") && completions % 10 == 0;
      receives[i].request = NULL;
    }
  }
  return has_fault("fail") && completions == 100 ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS;
}
#endif

__attribute__((constructor)) static void open_real(void) {
  const char *path = getenv("STRATUS_TEST_NET_PLUGIN");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  const struct TABLE *table = library ? dlsym(library, EXPORTED) : NULL;
  if (!table) {
    fprintf(stderr, "perf_plugin: STRATUS_TEST_NET_PLUGIN does not lead to the plugin\n");
    abort();
  }
  exported = *table;
#if IS_FAULTY
  real = *table;
  exported.isend = isend;
  exported.irecv = irecv;
  exported.test = test;
#endif
}
