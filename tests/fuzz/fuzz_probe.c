/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of `stratus probe` say to each other, as rank 0 and as another one: what is not
 * understood measures nothing beyond the limits, and reports tell the terminal nothing. No
 * measurement is made: the input says what it gave. */
#include <jansson.h>
#include <unistd.h>

#include "net_plugin/plugin/discovery.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/load.h"
#include "net_plugin/tools/probe/ranks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/messages.h"

enum { RANKS = 3, DEVICES = 2 };

/* ---- instead of the network (the Makefile names them for the linker) ---- */

int __wrap_discovery_run(struct discovery *found);
int __wrap_discovery_run(struct discovery *found) {
  *found = (struct discovery){ .devices.count = DEVICES };
  for (int i = 0; i < DEVICES; i++) {
    snprintf(found->devices.devices[i].name, sizeof found->devices.devices[i].name, "eth%d", i);
  }
  return 0;
}

int load_offer(const struct device *device, struct load_service *service) {
  FUZZ_CHECK(device->name[0]);
  *service = (struct load_service){ .server = -1 };
  return 0;
}

void load_serve(struct load_service *service, const struct probe_load *load) {
  (void)service;
  FUZZ_CHECK(load->duration_ns <= PROBE_DURATION_MAX_NS && load->device < DEVICES);
}

int load_send(const struct device *device, const uint8_t handle[HANDLE_BYTES],
              const struct probe_load *load, struct probe_result *result) {
  FUZZ_CHECK(device->name[0]);
  FUZZ_CHECK(load->duration_ns <= PROBE_DURATION_MAX_NS && load->device < DEVICES);
  fuzz_read_all(handle, HANDLE_BYTES);
  result->gbps = 1;
  return 0;
}

static void print(const struct probe_report *report) {
  char *text;
  size_t bytes;
  FILE *before = fuzz_print_here(&text, &bytes);
  report_table(report);
  fuzz_printed(before);
  fuzz_check_visible(text, bytes);
  free(text);
}

/* Each of the others says the same number of bytes; the last one the rest. */
static int connect_all(struct ranks *ranks, struct fuzz_input *input, uint8_t shape,
                       int others[RANKS]) {
  unsigned first = ranks->own > 0 ? 0 : 1, end = ranks->own > 0 ? 1 : ranks->count;
  size_t part = input->left / (end - first);
  int status = 0;
  for (unsigned i = first; i < end; i++) {
    int ends[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct fuzz_input own = { input->at, i + 1 < end ? part : input->left };
    input->at += own.left;
    input->left -= own.left;
    others[i] = ends[1];
    fuzz_say_all(others[i], &own, shape);
    int opened = control_channel_open(&ranks->channels[i], ends[0], "another rank");
    status = status ? status : opened;
  }
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ranks ranks;
  static struct probe_report report;
  int others[RANKS] = { -1, -1, -1 };
  fuzz_swallow_messages();
  log_set_sink(fuzz_swallow_log);
  struct fuzz_input input = { data, size };
  uint8_t shape = fuzz_u8(&input);
  ranks.count = RANKS;
  ranks.own = shape & 4 ? 1 : 0;
  memset(&report, 0, sizeof report);
  int status = connect_all(&ranks, &input, shape, others);
  status = status ? status : survey_run(&ranks, NS_PER_MS, &report);
  ranks_close(&ranks, status);
  if (report.results) {
    print(&report);
  }
  free(report.results);
  for (int i = 0; i < RANKS; i++) {
    close(others[i]);
  }
  return 0;
}
