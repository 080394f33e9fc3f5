/* SPDX-License-Identifier: Apache-2.0 */
/* A small libnvidia-ml.so.1 with the public functions that NCCL and PyTorch look up.
 * The devices are the runtime's. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "tests/fake_cuda/runtime/config.h"

enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6
};

#define EXPORT __attribute__((visibility("default")))
/* Whatever the arguments. */
#define ANSWERS(name, result)                                                                      \
  EXPORT int name(void) {                                                                          \
    return result;                                                                                 \
  }

typedef struct nvmlDevice_st *nvmlDevice_t;

static nvmlDevice_t handle_of(unsigned index) {
  return (nvmlDevice_t)(uintptr_t)(index + 1);
}

static unsigned index_of(nvmlDevice_t device) {
  return (unsigned)(uintptr_t)device - 1;
}

ANSWERS(nvmlInit_v2, NVML_SUCCESS)
ANSWERS(nvmlInit, NVML_SUCCESS)
ANSWERS(nvmlShutdown, NVML_SUCCESS)

EXPORT const char *nvmlErrorString(int result) {
  return result == NVML_SUCCESS ? "success" : "error";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n) {
  *n = (unsigned)device_count;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCount(unsigned *n) {
  return nvmlDeviceGetCount_v2(n);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
  if (index >= (unsigned)device_count)
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = handle_of(index);
  return NVML_SUCCESS;
}

/* NCCL may pass an 8 digit domain; compare the last 12 characters. */
EXPORT int nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device) {
  size_t length = strlen(bus_id);
  const char *tail = length > 12 ? bus_id + length - 12 : bus_id;
  for (unsigned i = 0; i < (unsigned)device_count; i++) {
    if (!strcasecmp(tail, devices[i].bus_id)) {
      *device = handle_of(i);
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

EXPORT int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
  *index = index_of(device);
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  *major = device_cc / 10;
  *minor = device_cc % 10;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int index, int *status) {
  *status = 0; /* NVML_P2P_STATUS_OK */
  return NVML_SUCCESS;
}

/* The last three PyTorch looks up, and asserts that they are there. */
ANSWERS(nvmlDeviceGetNvLinkState, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetNvLinkRemotePciInfo, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetNvLinkCapability, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetFieldValues, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetNvLinkRemotePciInfo_v2, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetNvLinkRemoteDeviceType, NVML_ERROR_NOT_SUPPORTED)
ANSWERS(nvmlDeviceGetComputeRunningProcesses, NVML_ERROR_NOT_SUPPORTED)

struct conf_compute_state {
  unsigned environment;
  unsigned cc_feature;
  unsigned dev_tools_mode;
};

EXPORT int nvmlSystemGetConfComputeState(struct conf_compute_state *state) {
  memset(state, 0, sizeof *state);
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
  return nvmlDeviceGetHandleByPciBusId(bus_id, device);
}
