/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts answer to `stratus-net doctor --all`: their verdicts and facts are compared, and tell
 * the terminal nothing. No host is asked: the input says what each has answered. */
#include <jansson.h>

#include "common/cli.h"
#include "common/clock.h"
#include "common/remote.h"
#include "net_plugin/tools/doctor_all.h"
#include "tests/fuzz/fuzz.h"

enum { HOSTS = 3 };

struct doctor_all_options doctor_all_options = { "stratus-net", "ssh", NS_PER_S };
static struct fuzz_input input;

void __wrap_remote_run_all(const struct remote_command *how, struct remote_result *answers,
                           int count);
void __wrap_remote_run_all(const struct remote_command *how, struct remote_result *answers,
                           int count) {
  for (int i = 0; how->variables[i]; i++) {
    FUZZ_CHECK(strcmp(how->variables[i], "STRATUS_SECRET") != 0);
  }
  for (int i = 0; i < count; i++) {
    char *line = fuzz_line(&input);
    snprintf(line[0] == '!' ? answers[i].why_not : answers[i].output,
             line[0] == '!' ? REMOTE_WHY_MAX : REMOTE_OUTPUT_MAX, "%s", line);
    free(line);
  }
}

void __wrap_doctor_paths_check(const struct remote_command *how, const struct host *const *hosts,
                               unsigned count, doctor_paths_tell_fn *tell, void *context);
void __wrap_doctor_paths_check(const struct remote_command *how, const struct host *const *hosts,
                               unsigned count, doctor_paths_tell_fn *tell, void *context) {
  (void)how;
  char *line = fuzz_line(&input);
  tell(context, hosts[count - 1], line[0] == '!', line);
  free(line);
}

static void run(const uint8_t *data, size_t size, bool is_json) {
  char *hosts[] = { "gpu1", "gpu[2-3]" };
  char *text;
  size_t bytes;
  input = (struct fuzz_input){ data, size };
  FILE *before = fuzz_print_here(&text, &bytes);
  int status = doctor_all(hosts, 2, is_json);
  fuzz_printed(before);
  FUZZ_CHECK(status == CLI_OK || status == CLI_FAILED);
  if (!is_json) {
    fuzz_check_visible(text, bytes);
  } else {
    json_t *all = json_loadb(text, bytes, 0, NULL);
    FUZZ_CHECK(json_array_size(json_object_get(all, "hosts")) == HOSTS);
    FUZZ_CHECK(json_is_true(json_object_get(all, "healthy")) == (status == CLI_OK));
    json_decref(all);
  }
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_swallow_messages();
  setenv("STRATUS_SECRET", "0123456789abcdef", 1);
  run(data, size, false);
  run(data, size, true);
  return 0;
}
