/* SPDX-License-Identifier: Apache-2.0 */
/* version: the release, for banners, `--version` and the handshake's error text. */
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

#define STRATUS_VERSION "0.1.0"

#endif
