/* SPDX-License-Identifier: Apache-2.0 */
/* NCCLX 2.29, told by a function that NCCL has not: an error level comes before the warnings. */
#define STAND_IN_WARN 3
#include "tests/abi/stand_in/libnccl.c"

int ncclWinSharedQuery(void);
EXPORTED int ncclWinSharedQuery(void) {
  return 0;
}
