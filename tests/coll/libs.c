/* SPDX-License-Identifier: Apache-2.0 */
/* libs: loads NCCL and the CUDA runtime, and looks up what nccl_api.h lists. */
#include "tests/coll/libs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/coll/message.h"

struct libs libs;

/* LD_LIBRARY_PATH, then this program's RUNPATH, which has the emulated GPU, then the system. */
static bool load(const char *name) {
  return dlopen(name, RTLD_NOW | RTLD_GLOBAL) != NULL;
}

static void *look_up(const char *name) {
  void *function = dlsym(RTLD_DEFAULT, name);
  if (!function)
    message_fail("there is no %s in NCCL or the CUDA runtime: the release is too old", name);
  return function;
}

/* 2.9 and later: XYYZZ as in 22907; NCCL's own macro is NCCL_VERSION(X, Y, Z). */
static void read_nccl_version(void) {
  NCCL(ncclGetVersion(&libs.nccl_version_code));
  int code = libs.nccl_version_code;
  snprintf(libs.nccl_version_text, sizeof libs.nccl_version_text, "%d.%d.%d", code / 10000,
           code / 100 % 100, code % 100);
}

void libs_open(void) {
  Dl_info info;
  if (!load("libnccl.so.2") || (!load("libcudart.so.12") && !load("libcudart.so.13")))
    message_fail("%s: set LD_LIBRARY_PATH, or build the emulated GPU: make nccl", dlerror());
#define LOOK_UP(result, name, arguments) libs.name = (result(*) arguments)look_up(#name);
  NCCL_FUNCTIONS(LOOK_UP)
  CUDA_FUNCTIONS(LOOK_UP)
  /* CUDA 12 has both names, and the plain one is the layout of CUDA 11 there. */
  void *properties = dlsym(RTLD_DEFAULT, "cudaGetDeviceProperties_v2");
  libs.get_device_properties =
      (cudaError_t(*)(void *, int))(properties ? properties : look_up("cudaGetDeviceProperties"));
  snprintf(libs.nccl_path, sizeof libs.nccl_path, "%s",
           dladdr((void *)libs.ncclAllReduce, &info) && info.dli_fname ? info.dli_fname : "?");
  read_nccl_version();
}

void libs_check_nccl(ncclResult_t result, const char *what) {
  if (result == ncclSuccess)
    return;
  const char *detail = libs.ncclGetLastError(NULL);
  message_fail("%.*s: %s%s%s\n  NCCL_DEBUG=WARN shows more", (int)strcspn(what, "("), what,
               libs.ncclGetErrorString(result), detail && *detail ? ": " : "",
               detail ? detail : "");
}

void libs_check_cuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    message_fail("%.*s: %s (CUDA error %d)", (int)strcspn(what, "("), what,
                 libs.cudaGetErrorString(error), error);
}

/* cudaDeviceProp differs between CUDA releases, but always begins with `char name[256]`, and
 * 8 KiB are several times its size. */
void libs_device_name(int device, char name[LIBS_NAME_MAX]) {
  static _Alignas(64) char properties[8192];
  libs_check_cuda(libs.get_device_properties(properties, device), "cudaGetDeviceProperties");
  memcpy(name, properties, LIBS_NAME_MAX);
  name[LIBS_NAME_MAX - 1] = '\0';
}

bool libs_is_emulated(const char *device_name) {
  return strstr(device_name, "emulated GPU") != NULL;
}
