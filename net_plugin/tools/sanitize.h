/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize: texts that came from other processes and hosts, as a terminal may see them.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_SANITIZE_H
#define NET_PLUGIN_TOOLS_SANITIZE_H

#include <jansson.h>

enum { SANITIZE_MAX = 256 };

/* The member of this name: visible ASCII, '?' for anything else; "-" without such a text. */
const char *sanitize_member(const json_t *object, const char *name, char text[SANITIZE_MAX]);

#endif
