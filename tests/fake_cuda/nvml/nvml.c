/* SPDX-License-Identifier: Apache-2.0 */
/* A small libnvidia-ml.so.1 with the public functions that NCCL looks up.
 * Devices mirror FAKE_CUDA_GPUS, FAKE_CUDA_FIRST_GPU, FAKE_CUDA_BUS_IDS and FAKE_CUDA_CC. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6
};

#define MAX_DEVICES 16
#define EXPORT __attribute__((visibility("default")))

typedef struct nvmlDevice_st *nvmlDevice_t;

static unsigned count = 1;
static int compute_capability = 80;
static char bus_ids[MAX_DEVICES][16];

static int env_int(const char *name, int fallback) {
  const char *value = getenv(name);
  return value ? atoi(value) : fallback;
}

__attribute__((constructor)) static void init(void) {
  count = (unsigned)env_int("FAKE_CUDA_GPUS", 1);
  if (count > MAX_DEVICES)
    count = MAX_DEVICES;
  compute_capability = env_int("FAKE_CUDA_CC", 80);
  int first = env_int("FAKE_CUDA_FIRST_GPU", 0);
  for (unsigned i = 0; i < count; i++)
    snprintf(bus_ids[i], sizeof bus_ids[i], "0000:%02x:00.0", (0x10 + first + i) & 0xff);
  const char *list = getenv("FAKE_CUDA_BUS_IDS");
  if (!list)
    return;
  char *copy = strdup(list);
  char *state = NULL;
  unsigned i = 0;
  for (char *t = strtok_r(copy, ",", &state); t && i < count; t = strtok_r(NULL, ",", &state))
    snprintf(bus_ids[i++], sizeof bus_ids[0], "%.15s", t);
  free(copy);
}

static nvmlDevice_t handle_of(unsigned index) {
  return (nvmlDevice_t)(uintptr_t)(index + 1);
}

static unsigned index_of(nvmlDevice_t device) {
  return (unsigned)(uintptr_t)device - 1;
}

EXPORT int nvmlInit_v2(void) {
  return NVML_SUCCESS;
}

EXPORT int nvmlInit(void) {
  return NVML_SUCCESS;
}

EXPORT int nvmlShutdown(void) {
  return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(int result) {
  switch (result) {
  case NVML_SUCCESS:
    return "success";
  case NVML_ERROR_INVALID_ARGUMENT:
    return "invalid argument";
  case NVML_ERROR_NOT_SUPPORTED:
    return "not supported";
  case NVML_ERROR_NOT_FOUND:
    return "not found";
  default:
    return "error";
  }
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n) {
  *n = count;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCount(unsigned *n) {
  return nvmlDeviceGetCount_v2(n);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
  if (index >= count)
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = handle_of(index);
  return NVML_SUCCESS;
}

/* NCCL may pass an 8 digit domain; compare the last 12 characters. */
EXPORT int nvmlDeviceGetHandleByPciBusId(const char *busId, nvmlDevice_t *device) {
  size_t length = strlen(busId);
  const char *tail = length > 12 ? busId + length - 12 : busId;
  for (unsigned i = 0; i < count; i++) {
    if (!strcasecmp(tail, bus_ids[i])) {
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
  (void)device;
  *major = compute_capability / 10;
  *minor = compute_capability % 10;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int index, int *status) {
  (void)a;
  (void)b;
  (void)index;
  *status = 0; /* NVML_P2P_STATUS_OK */
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, int *active) {
  (void)device;
  (void)link;
  (void)active;
  return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link, void *pci) {
  (void)device;
  (void)link;
  (void)pci;
  return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, int capability,
                                         unsigned *result) {
  (void)device;
  (void)link;
  (void)capability;
  (void)result;
  return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetFieldValues(nvmlDevice_t device, int n, void *values) {
  (void)device;
  (void)n;
  (void)values;
  return NVML_ERROR_NOT_SUPPORTED;
}

struct conf_compute_state {
  unsigned environment;
  unsigned cc_feature;
  unsigned dev_tools_mode;
};

EXPORT int nvmlSystemGetConfComputeState(struct conf_compute_state *state) {
  memset(state, 0, sizeof *state);
  return NVML_SUCCESS;
}

/* ---- asked for by NCCL 2.30 and later ---- */

struct pci_info {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_sub_system_id;
  char busId[32];
};

struct pci_info_ext {
  unsigned version, domain, bus, device, pci_device_id, pci_sub_system_id, base_class, sub_class;
  char busId[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_info *pci) {
  const char *busId = bus_ids[index_of(device)];
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%s", busId);
  snprintf(pci->busId, sizeof pci->busId, "0000%s", busId);
  sscanf(busId, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
  pci->pci_device_id = 0x20b210de;
  pci->pci_sub_system_id = 0x146310de;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetPciInfoExt(nvmlDevice_t device, struct pci_info_ext *pci) {
  struct pci_info basic;
  nvmlDeviceGetPciInfo_v3(device, &basic);
  pci->domain = basic.domain;
  pci->bus = basic.bus;
  pci->device = basic.device;
  pci->pci_device_id = basic.pci_device_id;
  pci->pci_sub_system_id = basic.pci_sub_system_id;
  pci->base_class = 3;
  pci->sub_class = 2;
  memcpy(pci->busId, basic.busId, sizeof pci->busId);
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned *speed) {
  (void)device;
  *speed = 16000;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
  (void)device;
  *generation = 4;
  return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
  (void)device;
  *width = 16;
  return NVML_SUCCESS;
}
