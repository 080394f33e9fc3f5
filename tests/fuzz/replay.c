/* SPDX-License-Identifier: Apache-2.0 */
/* replay: runs a fuzz target once with a file, or each file of a directory, in a build by the usual
 * compiler (make SAN=address fuzz-targets). What ends it names the input. */
#include <dirent.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static char path[4096];

static void name_input(void) {
  dprintf(2, "input: %s\n", path);
}

/* Of a check or an assertion. */
static void aborted(int signal_number) {
  name_input();
  _exit(1);
}

static void run_file(void) {
  FILE *file = fopen(path, "rb");
  FUZZ_CHECK(file != NULL);
  fseek(file, 0, SEEK_END);
  long bytes = ftell(file);
  rewind(file);
  FUZZ_CHECK(bytes >= 0);
  uint8_t *data = malloc((size_t)bytes); /* of its own, so that reading past its end shows */
  FUZZ_CHECK(data != NULL && fread(data, 1, (size_t)bytes, file) == (size_t)bytes);
  fclose(file);
  LLVMFuzzerTestOneInput(data, (size_t)bytes);
  free(data);
}

static unsigned run_directory(DIR *directory, const char *name) {
  unsigned count = 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (entry->d_name[0] != '.') {
      snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
      run_file();
      count++;
    }
  }
  closedir(directory);
  return count;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE|DIRECTORY\n", argv[0]);
    return 2;
  }
  __sanitizer_set_death_callback(name_input);
  signal(SIGABRT, aborted);
  snprintf(path, sizeof path, "%s", argv[1]);
  DIR *directory = opendir(argv[1]);
  if (directory == NULL) {
    run_file();
  }
  printf("inputs: %u\n", directory == NULL ? 1 : run_directory(directory, argv[1]));
  snprintf(path, sizeof path, "one of %s", argv[1]); /* leaks are told at the end */
  return 0;
}
