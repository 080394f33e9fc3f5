/* SPDX-License-Identifier: Apache-2.0 */
/* version: the release, for banners, `--version`, the handshake's error text, man pages and
 * packages; and the interfaces of NCCL that the plugins export, for packages, stratus doctor,
 * stratus perf and tests/abi/check_exports. All else is derived. */
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

#define STRATUS_VERSION "0.1.0"

/* The transport's name: what NCCL_NET and netName in a communicator's configuration are compared
 * with, in either case. */
#define STRATUS_TRANSPORT "stratus"

#define STRATUS_NCCL_RELEASES "2.19 to 2.32"
#define STRATUS_NET_ABI "v7 to v12"
#define STRATUS_COLLNET_ABI "v8 to v12"
#define STRATUS_TUNER_ABI "v1 to v7"

#endif
