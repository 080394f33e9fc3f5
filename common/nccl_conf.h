/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_conf: what a job is told by its environment and by NCCL's configuration files, and who says
 * so. NCCL puts lines of the files into the environment of the job, STRATUS_ variables, too; a tool
 * that is to see what a job sees does the same at its start: nccl_conf_apply.
 *
 * As NCCL reads them (src/misc/param.cc, v2.19.1-1 to v2.30.7-1): lines NAME=value, where all
 * behind the '=' is the value, blanks and quotes, too; of a name the first one counts: the
 * environment, also when empty, the user's file, then /etc/nccl.conf; a line that begins with '#'
 * sets nothing that anybody reads. What releases do in their own way:
 *   2.23.4  NCCL_CONF_FILE of the environment names the user's file, which is ~/.nccl.conf else
 *   2.30.3  ~ is HOME, before the home in the user database; a carriage return at the end of a line
 *           is not part of it, before part of the value
 * The NCCL in the library path says which release it is, and is asked only where this matters.
 * Where there is none, as with frameworks that bring their own: as 2.23.4 to 2.29.7.
 *
 * Owns: the lines, of the process until the next nccl_conf_load.  Threads: the main thread.
 * Blocks: on the file system.  Fails: -ENOMEM; what cannot be read is not read, as NCCL has it. */
#ifndef COMMON_NCCL_CONF_H
#define COMMON_NCCL_CONF_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/plain.h"

#define NCCL_CONF_SYSTEM_FILE "/etc/nccl.conf"

enum {
  NCCL_CONF_VALUE_MAX = 1024, /* of a name as well; longer ones are cut there (param.cc) */
  NCCL_CONF_WHERE_MAX = PATH_MAX + 32,
  NCCL_CONF_TEXT_MAX = NCCL_CONF_VALUE_MAX + QUOTE_MAX + NCCL_CONF_WHERE_MAX + 32,
};

/* The release of NCCL that jobs use, as ncclGetVersion counts; 0: not known. */
typedef int nccl_conf_release_fn(void);

/* Where the files are. NULL or "": there is no such place. Functions that take NULL look at the
 * real ones. */
struct nccl_conf_places {
  const char *named;       /* NCCL_CONF_FILE */
  const char *home;        /* HOME */
  const char *passwd_home; /* of the user database */
  const char *system_file;
};

/* A line that is neither empty nor a comment. */
struct nccl_conf_line {
  char *name, *value; /* value NULL: without a '=', so NCCL skips it */
  const char *file;
  unsigned number;
  bool counts; /* it is what a job sees */
};

struct nccl_conf_setting {
  const char *value; /* NULL: nobody has set it */
  const char *file;  /* NULL: the environment */
  unsigned line;
};

/* Reads the files. */
int nccl_conf_load(const struct nccl_conf_places *places, nccl_conf_release_fn *release);

/* The same for the real places, and sets in the environment what a job would see; but for LD_...,
 * which the loader reads before NCCL is there. */
int nccl_conf_apply(nccl_conf_release_fn *release);

/* Takes that out of the environment: for what is started on other hosts, which have files of their
 * own. nccl_conf_find still knows it. */
void nccl_conf_withdraw(void);

size_t nccl_conf_line_count(void);
const struct nccl_conf_line *nccl_conf_line(size_t index);

struct nccl_conf_setting nccl_conf_find(const char *name);

/* "the environment", or "/etc/nccl.conf, line 3". Returns `text`. */
const char *nccl_conf_where(const char *file, unsigned line, char text[NCCL_CONF_WHERE_MAX]);

/* NAME="value" is set in WHERE. Returns `text`. */
const char *nccl_conf_text(const char *name, const struct nccl_conf_setting *setting,
                           char text[NCCL_CONF_TEXT_MAX]);

/* What NCCL takes for a part of the value although nobody meant it; NULL: nothing. */
const char *nccl_conf_oddity(const char *value);

/* The file that is read as the user's own; false: there is none. */
bool nccl_conf_user_file(const struct nccl_conf_places *places, nccl_conf_release_fn *release,
                         char path[PATH_MAX]);

#endif
