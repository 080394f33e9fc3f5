/* SPDX-License-Identifier: Apache-2.0 */
/* shown: texts that came from other processes and hosts, as a terminal may see them.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_SHOWN_H
#define NET_PLUGIN_TOOLS_SHOWN_H

#include <jansson.h>

enum { SHOWN_MAX = 256 };

/* The member of this name: visible ASCII, '?' for anything else; "-" without such a text. */
const char *shown(const json_t *object, const char *name, char text[SHOWN_MAX]);

#endif
