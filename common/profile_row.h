/* SPDX-License-Identifier: Apache-2.0 */
/* profile_row: the lines of a profile's tables.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: -EINVAL, with the place and what is accepted in the scan's error. */
#ifndef COMMON_PROFILE_ROW_H
#define COMMON_PROFILE_ROW_H

#include "common/profile_scan.h"

int profile_row_parse(struct scan *scan, struct scan_span line, struct profile_row *row);

#endif
