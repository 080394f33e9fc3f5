/* SPDX-License-Identifier: Apache-2.0 */
/* Reads FAKE_CUDA_* once, before main. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/runtime/config.h"

int device_count = 1;
int device_first;
int device_cc = 80;
struct device devices[MAX_DEVICES];
bool waits_for_proxy;

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

__attribute__((constructor)) static void config_init(void) {
  const char *value;
  if ((value = getenv("FAKE_CUDA_GPUS")))
    device_count = atoi(value);
  if (device_count < 0)
    device_count = 0;
  if (device_count > MAX_DEVICES)
    device_count = MAX_DEVICES;
  waits_for_proxy = env_flag("FAKE_CUDA_WAIT_FOR_PROXY");
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
