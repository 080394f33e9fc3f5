/* SPDX-License-Identifier: Apache-2.0 */
/* coll: measures and checks NCCL's collective operations. */
#include "tests/coll/run.h"

int main(int argc, char **argv) {
  return run_program(argc, argv, argv, NULL);
}
