/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize: makes texts from other processes and hosts safe for a terminal.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_SANITIZE_H
#define NET_PLUGIN_TOOLS_SANITIZE_H

#include <jansson.h>

enum { SANITIZE_MAX = 256 };

/* The string member of this name, with '?' for everything but visible ASCII; "-" if there is none.
 */
const char *sanitize_member(const json_t *object, const char *name, char text[SANITIZE_MAX]);

#endif
