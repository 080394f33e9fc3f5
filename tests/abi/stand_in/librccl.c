/* SPDX-License-Identifier: Apache-2.0 */
/* RCCL 2.27.7, told by its file's name: an error level comes first. */
#define STAND_IN_WARN 3
#include "tests/abi/stand_in/libnccl.c"

int ncclGetVersion(int *version);
EXPORTED int ncclGetVersion(int *version) {
  *version = 22707;
  return 0;
}
