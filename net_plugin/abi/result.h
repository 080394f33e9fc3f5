/* SPDX-License-Identifier: Apache-2.0 */
/* result: negative errno to ncclResult_t, the only place that knows both.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_ABI_RESULT_H
#define NET_PLUGIN_ABI_RESULT_H

#include "net_plugin/abi/net_abi.h"

/* 0 is success. */
enum nccl_result result_from_errno(int error);

#endif
