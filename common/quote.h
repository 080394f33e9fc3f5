/* SPDX-License-Identifier: Apache-2.0 */
/* quote: a value of a user's, as messages show it: in double quotes, with every byte to be seen
 * that is not, such as a carriage return. Owns: nothing.  Threads: any.  Blocks: never.  Fails:
 * cannot; a long value ends in "...". */
#ifndef COMMON_QUOTE_H
#define COMMON_QUOTE_H

enum { QUOTE_MAX = 512 }; /* bytes of text: a line or two of a terminal */

/* "stratus\r" with the quotes; escapes are those of C. Returns `text`. */
const char *quote(const char *value, char text[QUOTE_MAX]);

#endif
