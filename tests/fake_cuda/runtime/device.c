/* SPDX-License-Identifier: Apache-2.0 */
/* The device table, the current device, and versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fake_cuda/runtime/device.h"

#define DRIVER_VERSION 12080

int device_count = 1;
struct device devices[MAX_DEVICES];
int device_first;
int device_cc = 80;
static _Thread_local int current_device;

bool env_flag(const char *name) {
  const char *value = getenv(name);
  return value && *value && strcmp(value, "0");
}

/* Sets a device's PCI address from text; false if it is not of the form dddd:bb:ss. */
static bool set_bus_id(struct device *device, const char *text) {
  unsigned domain, bus, slot;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
    return false;
  device->domain = domain & 0xffff;
  device->bus = bus & 0xff;
  device->slot = slot & 0x1f;
  snprintf(device->bus_id, sizeof device->bus_id, "%04x:%02x:%02x.0", device->domain, device->bus,
           device->slot);
  return true;
}

/* Reads FAKE_CUDA_BUS_IDS, a comma separated list of PCI addresses. */
static void apply_bus_ids(const char *list) {
  char *copy = strdup(list);
  char *state = NULL;
  int i = 0;
  for (char *t = strtok_r(copy, ",", &state); t && i < device_count;
       t = strtok_r(NULL, ",", &state))
    set_bus_id(&devices[i++], t);
  free(copy);
}

__attribute__((constructor)) static void device_init(void) {
  const char *value;
  if ((value = getenv("FAKE_CUDA_GPUS")))
    device_count = atoi(value);
  if (device_count < 0)
    device_count = 0;
  if (device_count > MAX_DEVICES)
    device_count = MAX_DEVICES;
  if ((value = getenv("FAKE_CUDA_FIRST_GPU")))
    device_first = atoi(value);
  if ((value = getenv("FAKE_CUDA_CC")))
    device_cc = atoi(value);
  for (int i = 0; i < device_count; i++) {
    char text[32];
    snprintf(text, sizeof text, "0:%x:0", 0x10 + device_first + i);
    set_bus_id(&devices[i], text);
  }
  if ((value = getenv("FAKE_CUDA_BUS_IDS")))
    apply_bus_ids(value);
}

int device_current(void) {
  return current_device;
}

void device_set_current(int device) {
  current_device = device;
}

bool device_is_valid(int device) {
  return device >= 0 && device < device_count;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  const char *value = getenv("FAKE_CUDA_DRIVER_VERSION");
  *version = value ? atoi(value) : DRIVER_VERSION;
  return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  *count = device_count;
  return device_count ? cudaSuccess : error_set(cudaErrorNoDevice);
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceReset(void) {
  return cudaDeviceSynchronize();
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int len, int device) {
  if (!device_is_valid(device))
    return error_set(cudaErrorInvalidDevice);
  snprintf(bus_id, len, "%s", devices[device].bus_id);
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *bus_id) {
  for (int i = 0; i < device_count; i++) {
    if (!strcasecmp(bus_id, devices[i].bus_id)) {
      *device = i;
      return cudaSuccess;
    }
  }
  return error_set(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  (void)flags;
  return device_is_valid(peer) ? cudaSuccess : error_set(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceSetLimit(int limit, size_t value) {
  (void)limit;
  (void)value;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, int limit) {
  (void)limit;
  *value = 1024;
  return cudaSuccess;
}
