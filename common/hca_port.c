/* SPDX-License-Identifier: Apache-2.0 */
/* See hca_port.h. */
#include "common/hca_port.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/sysfs.h"

#define PORT "sys/class/infiniband/%s/ports/%d/"

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)". Whole numbers, as the dot of a fraction is another
 * one in some locales. */
static uint32_t parse_mbps(const char *text) {
  uint32_t gbps = 0, tenths = 0;
  bool is_rate = sscanf(text, "%5" SCNu32 ".%1" SCNu32, &gbps, &tenths) > 0 && gbps < 100000 &&
                 strstr(text, " Gb/sec");
  return is_rate ? gbps * 1000 + tenths * 100 : 0;
}

void hca_port_read(const char *root, const char *hca, int port, struct hca_port *out) {
  char text[SYSFS_TEXT_MAX];
  *out = (struct hca_port){ 0 };
  if (sysfs_read_text(root, text, sizeof text, PORT "state", hca, port) > 0) {
    const char *colon = strstr(text, ": "); /* "4: ACTIVE" */
    snprintf(out->state, sizeof out->state, "%.*s", HCA_PORT_STATE_MAX - 1,
             colon ? colon + 2 : text);
    out->is_active = strcmp(out->state, "ACTIVE") == 0;
  }
  if (sysfs_read_text(root, text, sizeof text, PORT "rate", hca, port) > 0) {
    out->mbps = parse_mbps(text);
  }
}
