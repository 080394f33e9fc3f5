/* SPDX-License-Identifier: Apache-2.0 */
/* node_list: Slurm's short form of several names, "rack[1-2]n[01-03,7]-ib,login": lists of numbers
 * in brackets, whose leading zeros count. The last bracket varies fastest.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: -EINVAL for what is no such form, -ERANGE
 * for more than NODE_LIST_MAX names, -ENAMETOOLONG if a name does not fit. */
#ifndef COMMON_NODE_LIST_H
#define COMMON_NODE_LIST_H

#include <stddef.h>

enum { NODE_LIST_MAX = 65536 };

/* Characters of the first entry of a list: up to a comma that is in no bracket, or to its end. */
size_t node_list_entry(const char *list);

/* How many names an entry stands for; without brackets one. */
int node_list_count(const char *entry, unsigned *count);

/* One of them, by its place from 0. */
int node_list_name(const char *entry, unsigned place, char *name, size_t size);

#endif
