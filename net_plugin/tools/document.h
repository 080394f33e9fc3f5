/* SPDX-License-Identifier: Apache-2.0 */
/* document: JSON that the tools print, and texts of JSON from other processes and hosts, made safe
 * for a terminal.
 * Owns: nothing.  Threads: any.  Blocks: on stdout.  Fails: with an exit status (common/cli.h). */
#ifndef NET_PLUGIN_TOOLS_DOCUMENT_H
#define NET_PLUGIN_TOOLS_DOCUMENT_H

#include <jansson.h>

enum { DOCUMENT_TEXT_MAX = 256 };

/* The string member of this name, with '?' for everything but visible ASCII; "-" if there is none.
 */
const char *document_text(const json_t *object, const char *name, char text[DOCUMENT_TEXT_MAX]);

/* The element of an array with the same value under the key; NULL: none. */
const json_t *document_counterpart(const json_t *array, const json_t *element, const char *key);

/* In ASCII. Takes the reference; NULL: out of memory. `flags` are those of json_dumpf. */
int document_print(json_t *document, size_t flags);

#endif
