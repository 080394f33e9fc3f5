/* SPDX-License-Identifier: Apache-2.0 */
/* choices: variables of NCCL that change what it chooses by itself: algorithm, protocol, channels,
 * threads, sizes of buffers and chunks. A profile chooses among what they leave, so where it
 * decides hosts that differ in one would wait for each other for ever. Owns: nothing.  Threads: one
 * that sets no variable meanwhile.  Blocks: never.  Fails: cannot. */
#ifndef COMMON_CHOICES_H
#define COMMON_CHOICES_H

#include <stddef.h>

enum { CHOICES_TEXT_MAX = 4096 };

extern const char *const choices_names[]; /* NULL at the end */

/* "NCCL_ALGO=ring NCCL_BUFFSIZE=8388608": those that are set, in a form that is equal where NCCL
 * takes them for equal. */
void choices_list(char text[CHOICES_TEXT_MAX]);

/* Entries of the list `one` that are not in `other`, as "NCCL_ALGO=ring, NCCL_PROTO=ll"; "none of
 * these". All of them have room in CHOICES_DIFFERENCE_MAX. Returns `text`. */
enum { CHOICES_DIFFERENCE_MAX = 2 * CHOICES_TEXT_MAX };
char *choices_difference(const char *one, const char *other, char *text, size_t room);

#endif
