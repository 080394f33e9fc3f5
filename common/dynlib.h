/* SPDX-License-Identifier: Apache-2.0 */
/* dynlib: optional libraries (verbs, CUDA), opened when first needed.
 * Owns: the handle, until dynlib_close.  Threads: the caller serialises per struct.
 * Blocks: as dlopen does.  Fails: -ENOENT no candidate can be loaded, -ENOSYS it lacks a
 * required function; the reason is text for the log, and every function pointer is NULL then.
 *
 *   struct cuda_functions { int (*cuInit)(unsigned); int (*cuMemGetHandle)(...); };
 *   static const struct dynlib_symbol symbols[] = {
 *     DYNLIB_REQUIRED(struct cuda_functions, cuInit),
 *     DYNLIB_OPTIONAL(struct cuda_functions, cuMemGetHandle),
 *     { 0 },
 *   };
 *   static const char *const sonames[] = { "libcuda.so.1", "libcuda.so", NULL }; */
#ifndef COMMON_DYNLIB_H
#define COMMON_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

struct dynlib_symbol {
  const char *name;    /* NULL ends the table */
  const char *version; /* symbol version, as in "IBVERBS_1.1"; NULL: the default one */
  size_t offset;       /* of the function pointer in the caller's struct */
  bool is_required;
};

#define DYNLIB_REQUIRED(type, member)                                                              \
  { #member, NULL, offsetof(type, member), true }
#define DYNLIB_OPTIONAL(type, member)                                                              \
  { #member, NULL, offsetof(type, member), false }

enum { DYNLIB_REASON_MAX = 512 };

struct dynlib {
  void *handle;                   /* NULL while closed */
  const char *soname;             /* the candidate that was opened */
  char reason[DYNLIB_REASON_MAX]; /* after a failure: why, for people */
};

/* Tries the candidates in order; fills in the function pointers in `functions`. */
int dynlib_open(struct dynlib *lib, const char *const *sonames, const struct dynlib_symbol *symbols,
                void *functions);

/* The function pointers are invalid afterwards. Does nothing if closed. */
void dynlib_close(struct dynlib *lib);

#endif
