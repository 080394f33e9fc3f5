/* SPDX-License-Identifier: Apache-2.0 */
/* libs: finds NCCL and the CUDA runtime when the program runs, never when it is built.
 * Owns: the loaded libraries, until the process ends.  Threads: loaded by one, used by any.
 * Blocks: while the libraries load.  Fails: with the loader's message. */
#ifndef COLL_LIBS_H
#define COLL_LIBS_H

#include <stdbool.h>

#include "tests/coll/nccl_api.h"

#define LIBS_DECLARE(result, name, arguments) result(*name) arguments;

extern struct libs {
  NCCL_FUNCTIONS(LIBS_DECLARE)
  CUDA_FUNCTIONS(LIBS_DECLARE)
  cudaError_t (*get_device_properties)(void *properties, int device);
  int nccl_version_code;      /* 22907 for 2.29.7 */
  char nccl_version_text[32]; /* "2.29.7" */
  char nccl_path[512];
} libs;

/* Ends the process with a message if there is no NCCL or no CUDA runtime. */
void libs_open(void);

/* End the process with a message naming `what` unless the result is success. */
void libs_check_nccl(ncclResult_t result, const char *what);
void libs_check_cuda(cudaError_t error, const char *what);
#define NCCL(call) libs_check_nccl(libs.call, #call)
#define CUDA(call) libs_check_cuda(libs.call, #call)

/* The device's name; the emulated GPU is known by it. */
enum { LIBS_NAME_MAX = 256 };
void libs_device_name(int device, char name[LIBS_NAME_MAX]);
bool libs_is_emulated(const char *device_name);

#endif
