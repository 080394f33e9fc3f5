/* SPDX-License-Identifier: Apache-2.0 */
/* See nccl_found.h. */
#include "common/tools/nccl_found.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/nccl_version.h"
#include "common/tools/program_path.h"

/* NVIDIA's wheels (nvidia-nccl-cu12, -cu13), which PyTorch's need. */
#define IN_PREFIX "%s/lib*/python3*/%s-packages/nvidia/nccl/lib/libnccl.so.2"

static void add_files(glob_t *files, const char *prefix) {
  static const char *const kinds[] = { "site", "dist" };
  for (int i = 0; i < 2; i++) {
    char pattern[PATH_MAX + 128];
    snprintf(pattern, sizeof pattern, IN_PREFIX, prefix, kinds[i]);
    glob(pattern, GLOB_APPEND, NULL, files);
  }
}

/* Not where a symbolic link leads: a virtual environment's python is one. */
static void add_files_of(glob_t *files, const char *program) {
  char path[PATH_MAX];
  if (program && program_path_find(program, path)) {
    program_path_to_prefix(path);
    add_files(files, path);
  }
}

/* Beside this program, which a wheel may have brought, and the user's own. */
static void add_other_files(glob_t *files) {
  char path[PATH_MAX];
  const char *home = getenv("HOME");
  if (realpath("/proc/self/exe", path)) {
    program_path_to_prefix(path);
    add_files(files, path);
  }
  if (home && snprintf(path, sizeof path, "%s/.local", home) < PATH_MAX) {
    add_files(files, path);
  }
}

bool nccl_found_all(const char *program, bool is_good(int release, const void *argument),
                    const void *argument) {
  glob_t files = { 0 };
  int release = nccl_version_installed();
  bool is_found = release > 0, is_all = release == 0 || is_good(release, argument);
  add_files_of(&files, program);
  add_files_of(&files, "python3");
  add_other_files(&files);
  for (size_t i = 0; i < files.gl_pathc && is_all; i++) {
    release = nccl_version_of_library(files.gl_pathv[i]);
    is_found = is_found || release > 0;
    is_all = release == 0 || is_good(release, argument);
  }
  globfree(&files);
  return is_found && is_all;
}
