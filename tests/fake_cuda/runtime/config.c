/* SPDX-License-Identifier: Apache-2.0 */
/* Reads FAKE_CUDA_* once, before main. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/runtime/config.h"

int device_count = 1;
int device_cc = 80;
struct device devices[MAX_DEVICES];
bool waits_for_proxy;

__attribute__((constructor)) static void config_init(void) {
  const char *value;
  if ((value = getenv("FAKE_CUDA_GPUS")))
    device_count = atoi(value);
  if (device_count < 0)
    device_count = 0;
  if (device_count > MAX_DEVICES)
    device_count = MAX_DEVICES;
  value = getenv("FAKE_CUDA_WAIT_FOR_PROXY");
  waits_for_proxy = value && *value && strcmp(value, "0");
  if ((value = getenv("FAKE_CUDA_CC")))
    device_cc = atoi(value);
  for (int i = 0; i < device_count; i++) {
    devices[i].bus = (unsigned)(0x10 + i);
    snprintf(devices[i].bus_id, sizeof devices[i].bus_id, "0000:%02x:00.0", devices[i].bus);
  }
}
