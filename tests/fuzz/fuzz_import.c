/* SPDX-License-Identifier: Apache-2.0 */
/* `stratus-tune import` of any text as the CSV of NCCL's example tuner. What it makes of it is a
 * profile that is read again; what it refuses leaves no profile. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/profile.h"
#include "tests/fuzz/fuzz.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  int fd;
  char path[32];
} in, out;

static void make_file(int *fd, char path[32]) {
  *fd = memfd_create("import", MFD_CLOEXEC);
  FUZZ_CHECK(*fd >= 0);
  snprintf(path, 32, "/proc/self/fd/%d", *fd);
}

static void check_profile(void) {
  static struct profile_error error;
  struct profile profile;
  static char text[1 << 22];
  ssize_t bytes = pread(out.fd, text, sizeof text, 0);
  FUZZ_CHECK(bytes > 0 && bytes < (ssize_t)sizeof text);
  error = (struct profile_error){ 0 };
  FUZZ_CHECK(profile_parse(text, (size_t)bytes, &profile, &error) == 0);
  FUZZ_CHECK(profile.table_count > 0);
  profile_free(&profile);
}

static void set_option(const char *name, const void *value, size_t bytes) {
  const struct cli_option *option = tune_import.options;
  while (strcmp(option->name, name) != 0) {
    option++;
  }
  memcpy(option->value, value, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_input input = { data, size };
  fuzz_swallow_messages();
  if (!in.path[0]) {
    make_file(&in.fd, in.path);
    make_file(&out.fd, out.path);
  }
  uint8_t shape = fuzz_u8(&input); /* what the options say */
  const char *output = out.path;
  int64_t nodes = shape & 15, ppn = shape >> 4;
  set_option("output", &output, sizeof output);
  set_option("nodes", &nodes, sizeof nodes);
  set_option("ppn", &ppn, sizeof ppn);
  FUZZ_CHECK(ftruncate(in.fd, 0) == 0 && ftruncate(out.fd, 0) == 0);
  FUZZ_CHECK(pwrite(in.fd, input.at, input.left, 0) == (ssize_t)input.left);
  char *arguments[] = { in.path, NULL };
  int status = tune_import.run(1, arguments, false);
  if (status == CLI_OK) {
    check_profile();
  } else {
    FUZZ_CHECK(lseek(out.fd, 0, SEEK_END) == 0);
  }
  return 0;
}
