/* SPDX-License-Identifier: Apache-2.0 */
/* conf_place: where a file of settings really is: a directory that is held open, and a name in it.
 * What is done there by descriptor stays in that directory, whatever becomes of the path meanwhile.
 *
 * The way there is walked one name at a time. Root follows no symbolic link of another user, so
 * that nobody else chooses which file root writes; the file's own directory may be anybody's.
 *
 * Owns: the descriptor, until conf_place_close.  Threads: any.  Blocks: on the file system.
 * Fails: negative errno; -EPERM: a link of another user. */
#ifndef COMMON_TOOLS_CONF_PLACE_H
#define COMMON_TOOLS_CONF_PLACE_H

#include <limits.h>

struct conf_place {
  int directory;
  char name[NAME_MAX + 1]; /* no link, when it was looked at; it need not exist */
};

int conf_place_open(const char *path, struct conf_place *place);
void conf_place_close(struct conf_place *place);

#endif
