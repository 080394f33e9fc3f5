/* SPDX-License-Identifier: Apache-2.0 */
/* Only present so that nccl.h can be included; the emulation needs nothing from it. */
#include "cuda_runtime.h"
