/* SPDX-License-Identifier: Apache-2.0 */
/* option_table: what options there are, for the parser and the help text.
 * Owns: nothing.  Threads: any.
 * Blocks: never.  Fails: cannot. */
#ifndef COLL_OPTION_TABLE_H
#define COLL_OPTION_TABLE_H

/* Options without a letter. */
enum {
  OPTION_OP = 256,
  OPTION_SIZES,
  OPTION_MIN_TIME,
  OPTION_PER_ITERATION,
  OPTION_GRACE,
  OPTION_JSON,
  OPTION_LABEL,
  OPTION_HOSTS,
  OPTION_PPN,
  OPTION_ENV,
  OPTION_ADDRESS,
  OPTION_SPLIT_CPUS,
  OPTION_DATA,
  OPTION_REPLAY,
  OPTION_REPLAY_STEPS,
  OPTION_REPLAY_SKIP,
  OPTION_COMPUTE_SCALE,
  OPTION_BYTES_SCALE,
  OPTION_BUCKET_BYTES,
  OPTION_REPLAY_LIST,
  OPTION_VERSION
};

/* What an option may be combined with. */
enum option_use {
  USE_TABLE, /* not with --replay */
  USE_ANY,
  USE_REPLAY, /* only with --replay */
  OPTION_USES
};

struct option_row {
  int id; /* the letter, or one of the above */
  const char *name;
  const char *argument; /* NULL: none */
  const char *help;
  enum option_use use;
};

enum { OPTION_ROWS = 37 };
extern const struct option_row option_rows[OPTION_ROWS];

#endif
