/* SPDX-License-Identifier: Apache-2.0 */
/* libs: loads NCCL and the CUDA runtime, and looks up what nccl_api.h lists. */
#include "tests/coll/libs.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/coll/message.h"

struct libs libs;

static const char nccl_name[] = "libnccl.so.2";
static const char *const cuda_names[] = { "libcudart.so.12", "libcudart.so.13", "libcudart.so" };
enum { CUDA_NAMES = sizeof cuda_names / sizeof cuda_names[0] };

/* What was tried, for the message when nothing was found. */
static char tried[2048];

static void note_failure(const char *path) {
  size_t used = strlen(tried);
  const char *error = dlerror();
  snprintf(tried + used, sizeof tried - used, "\n  %.400s", error ? error : path);
}

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library)
    note_failure(path);
  return library;
}

/* A missing file is skipped silently: it is not the user's problem. */
static void *load_file(const char *directory, const char *below, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s/%s", directory, below, name);
  return access(path, R_OK) ? NULL : load(path);
}

static void *load_below_home(const char *home, const char *name) {
  static const char *const below[] = { "/lib", "/lib64", "" };
  void *library = NULL;
  for (int i = 0; home && !library && i < 3; i++)
    library = load_file(home, below[i], name);
  return library;
}

/* An NCCL on LD_LIBRARY_PATH takes precedence: the user put it there. */
static bool is_on_library_path(const char *name) {
  const char *list = getenv("LD_LIBRARY_PATH");
  while (list && *list) {
    size_t length = strcspn(list, ":");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", (int)length, list, name);
    if (!access(path, R_OK))
      return true;
    list += length + (list[length] == ':');
  }
  return false;
}

/* build/tests/coll/coll -> build/fake_cuda/lib/<release>/libnccl.so.2 */
static void *load_emulated(void) {
  char path[PATH_MAX - 64];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  for (int up = 0; up < 3; up++) {
    char *slash = strrchr(path, '/');
    if (!slash)
      return NULL;
    *slash = '\0';
  }
  void *library = load_file(path, "/fake_cuda/lib/sid", nccl_name);
  return library ? library : load_file(path, "/fake_cuda/lib/trixie", nccl_name);
}

static void *load_nccl(void) {
  const char *home = getenv("NCCL_HOME");
  void *library = NULL;
  if (home && *home) {
    library = load_below_home(home, nccl_name);
    if (!library)
      message_fail("no %s in NCCL_HOME=%s (or its lib, lib64)%s", nccl_name, home, tried);
    return library;
  }
  if (!is_on_library_path(nccl_name))
    library = load_emulated();
  if (!library)
    library = load(nccl_name);
  if (!library)
    message_fail("no NCCL found; set NCCL_HOME, or build the emulated GPU: make nccl%s", tried);
  return library;
}

static void *load_cuda(void) {
  void *library = NULL;
  for (int i = 0; i < CUDA_NAMES && !library; i++)
    library = dlopen(cuda_names[i], RTLD_NOW | RTLD_NOLOAD);
  for (int i = 0; i < CUDA_NAMES && !library; i++)
    library = load(cuda_names[i]);
  for (int i = 0; i < CUDA_NAMES && !library; i++)
    library = load_below_home(getenv("CUDA_HOME"), cuda_names[i]);
  if (!library)
    message_fail("no CUDA runtime (libcudart.so.12 or .13) found; set CUDA_HOME%s", tried);
  return library;
}

static void *look_up(void *library, const char *name, const char *where) {
  void *function = dlsym(library, name);
  if (!function)
    message_fail("%s has no %s: its release is too old", where, name);
  return function;
}

static void remember_path(void *function, char *path, size_t size) {
  Dl_info info;
  snprintf(path, size, "%s", dladdr(function, &info) && info.dli_fname ? info.dli_fname : "?");
}

/* 2.9 and later: XYYZZ as in 22907; NCCL's own macro is NCCL_VERSION(X, Y, Z). */
static void read_nccl_version(void) {
  NCCL(ncclGetVersion(&libs.nccl_version_code));
  int code = libs.nccl_version_code;
  snprintf(libs.nccl_version_text, sizeof libs.nccl_version_text, "%d.%d.%d", code / 10000,
           code / 100 % 100, code % 100);
}

void libs_open(void) {
  void *nccl = load_nccl();
  void *cuda = load_cuda();
#define LOOK_UP_NCCL(result, name, arguments)                                                      \
  libs.name = (result(*) arguments)look_up(nccl, #name, nccl_name);
#define LOOK_UP_CUDA(result, name, arguments)                                                      \
  libs.name = (result(*) arguments)look_up(cuda, #name, "the CUDA runtime");
#define LOOK_UP_GRAPH(result, name, arguments)                                                     \
  libs.name = (result(*) arguments)dlsym(cuda, #name);                                             \
  libs.has_graphs = libs.has_graphs && libs.name;
  NCCL_FUNCTIONS(LOOK_UP_NCCL)
  CUDA_FUNCTIONS(LOOK_UP_CUDA)
  libs.has_graphs = true;
  CUDA_GRAPH_FUNCTIONS(LOOK_UP_GRAPH)
  /* CUDA 12 has both names, and the plain one is the layout of CUDA 11 there. */
  void *properties = dlsym(cuda, "cudaGetDeviceProperties_v2");
  libs.get_device_properties = (cudaError_t(*)(void *, int))(
      properties ? properties : look_up(cuda, "cudaGetDeviceProperties", "the CUDA runtime"));
  remember_path((void *)libs.ncclAllReduce, libs.nccl_path, sizeof libs.nccl_path);
  remember_path((void *)libs.cudaMalloc, libs.cuda_path, sizeof libs.cuda_path);
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
