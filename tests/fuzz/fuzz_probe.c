/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of `stratus probe` say to each other: tasks for an agent, which orders no
 * measurement beyond its limits, and the answers of agents to the coordinator, whose reports tell
 * the terminal nothing. No measurement is made: the input says what it gave. */
#include <errno.h>
#include <jansson.h>
#include <unistd.h>

#include "net_plugin/plugin/discovery.h"
#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/probe/load.h"
#include "net_plugin/tools/probe/probe.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/messages.h"

enum { AGENTS = 3, DEVICES = 2 };

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

int load_serve(struct load_service *service, const struct probe_load *load) {
  (void)service;
  FUZZ_CHECK(load->duration_ns <= AGENT_DURATION_MAX_NS && load->device < DEVICES);
  return -ETIMEDOUT;
}

int load_send(const struct device *device, const uint8_t handle[HANDLE_BYTES],
              const struct probe_load *load, struct probe_result *result) {
  FUZZ_CHECK(device->name[0]);
  FUZZ_CHECK(load->duration_ns <= AGENT_DURATION_MAX_NS && load->device < DEVICES);
  fuzz_read_all(handle, HANDLE_BYTES);
  result->gbps = 1;
  return 0;
}

/* ---- the two sides ---- */

static void be_agent(struct fuzz_input *input, uint8_t shape) {
  int fds[2];
  FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  fuzz_say_all(fds[1], input, shape);
  agent_run(fds[0]);
  close(fds[1]);
}

static void print(const struct probe_report *report, int (*make)(const struct probe_report *),
                  bool is_json) {
  char *text;
  size_t bytes;
  FILE *before = fuzz_print_here(&text, &bytes);
  make(report);
  fuzz_printed(before);
  fuzz_check_visible(text, bytes);
  json_t *read = is_json ? json_loadb(text, bytes, 0, NULL) : NULL;
  FUZZ_CHECK(!is_json || read);
  json_decref(read);
  free(text);
}

/* Each agent says the same number of bytes; the last one the rest. */
static void be_coordinator(struct fuzz_input *input, uint8_t shape) {
  int fds[AGENTS], others[AGENTS];
  size_t part = input->left / AGENTS;
  for (int i = 0; i < AGENTS; i++) {
    int ends[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct fuzz_input own = { input->at, i < AGENTS - 1 ? part : input->left };
    input->at += own.left;
    input->left -= own.left;
    fds[i] = ends[0];
    others[i] = ends[1];
    fuzz_say_all(others[i], &own, shape);
  }
  struct survey *survey;
  struct probe_report report = { 0 };
  int status = survey_open(fds, AGENTS, &survey);
  if (status == 0) {
    survey_run(survey, shape & 8 ? NS_PER_MS : 0, &report);
  }
  if (report.results) {
    print(&report, report_table, false);
    print(&report, report_json, true);
  }
  survey_close(survey, &report);
  for (int i = 0; i < AGENTS; i++) {
    close(others[i]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_swallow_messages();
  log_set_sink(fuzz_swallow_log);
  struct fuzz_input input = { data, size };
  uint8_t shape = fuzz_u8(&input);
  if (shape & 4) {
    be_agent(&input, shape);
  } else {
    be_coordinator(&input, shape);
  }
  return 0;
}
