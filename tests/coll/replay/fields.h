/* SPDX-License-Identifier: Apache-2.0 */
/* fields: reads JSON objects by tables of their keys; each error names its place in the text.
 * Owns: nothing.  Threads: any, on different structs.
 * Blocks: never.  Fails: -EINVAL or -ENOMEM, with a message "FILE: layers[3].forward_us: what". */
#ifndef COLL_REPLAY_FIELDS_H
#define COLL_REPLAY_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A step on the way from the top of the text to a value; the parent's is on the caller's stack. */
struct place {
  const struct place *parent; /* NULL: the top */
  const char *key;            /* of an object; NULL: the index of an array */
  size_t index;
};

/* What is read, and where the message goes. */
struct fields_reader {
  const char *name; /* of the file, in messages */
  char *error;
  size_t error_size;
  struct workload_context *context; /* what is known so far: workload_parts.h */
};

struct field;
typedef int fields_read(struct fields_reader *reader, const struct place *place,
                        const json_t *value, const struct field *field, void *to);

/* A key of an object. Kinds are bits that the caller gives a meaning; 0 in `required`: optional. */
struct field {
  const char *key;
  unsigned required, allowed; /* kinds of the object that must, or may, have the key */
  fields_read *read;          /* NULL: somebody else reads it */
  size_t offset;              /* of what is read, in the caller's struct */
  double low, high;           /* of a number or the length of a list or text, both accepted */
};

/* Reads all of them in the order of the table. An unknown key, a missing one, or one that objects
 * of this kind do not have is an error; `kind` is one bit, `kind_text` what a message calls it. */
int fields_read_object(struct fields_reader *reader, const struct place *place,
                       const json_t *object, const struct field *fields, size_t count,
                       unsigned kind, const char *kind_text, void *to);

/* Sets the message; `place` NULL: the file as a whole. Returns -EINVAL. */
int fields_fail(struct fields_reader *reader, const struct place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value has this type, or a message says so; `expected` as in "a list". */
int fields_want(struct fields_reader *reader, const struct place *place, const json_t *value,
                json_type type, const char *expected);

/* The place of a word in a list as a message has it, "ddp, fsdp or events", or what `find` says of
 * words that are not in it, if not NULL; an int or an enum. */
int fields_read_word(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const char *words, int (*find)(const char *word), void *to);

/* A list of field->low to field->high entries. */
int fields_want_list(struct fields_reader *reader, const struct place *place, const json_t *value,
                     const struct field *field);

/* What `to` points to: */
fields_read fields_read_int;    /* int */
fields_read fields_read_count;  /* uint64_t */
fields_read fields_read_number; /* double */
fields_read fields_read_text;   /* char *, to be freed */
fields_read fields_read_name;   /* likewise; of letters, digits and . _ + - */

#endif
