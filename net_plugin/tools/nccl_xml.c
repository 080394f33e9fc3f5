/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's xmlGetNode and what it calls, on a text, with lines. */
#include "net_plugin/tools/nccl_xml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/plain.h"

enum { DEPTH_MAX = 64 }; /* elements within elements; NCCL's own files have 8 */

struct reader {
  const char *at, *end;
  int line;
  struct nccl_xml_error *error;
};

static int fail(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int fail(struct reader *reader, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error->why, sizeof reader->error->why, format, arguments);
  va_end(arguments);
  plain_text(reader->error->why);
  reader->error->line = reader->line;
  return -EINVAL;
}

static int take(struct reader *reader, char *c) {
  if (reader->at == reader->end) {
    return fail(reader, "the file ends within a tag or comment");
  }
  *c = *reader->at++;
  reader->line += *c == '\n';
  return 0;
}

static int take_value(struct reader *reader, char value[NCCL_XML_WORD_MAX], char *last) {
  char quote = 0, c = 0;
  int result = take(reader, &quote);
  if (result == 0 && quote != '"' && quote != '\'') {
    return fail(reader, "a value without quotes");
  }
  for (int length = 0; result == 0 && (result = take(reader, &c)) == 0; length++) {
    if (c == quote) {
      value[length] = '\0';
      return take(reader, last);
    }
    if (length == NCCL_XML_WORD_MAX - 2) {
      return fail(reader, "a value of more than %d characters", NCCL_XML_WORD_MAX - 2);
    }
    value[length] = c;
  }
  return result;
}

/* A name, or with a `value` a name and its value; `last` is what ended it. */
static int take_token(struct reader *reader, char name[NCCL_XML_WORD_MAX],
                      char value[NCCL_XML_WORD_MAX], char *last) {
  char c = 0;
  int result = 0;
  for (int length = 0; (result = take(reader, &c)) == 0; length++) {
    name[length] = '\0';
    if (c == '=') {
      return value ? take_value(reader, value, last)
                   : fail(reader,
                          "\"=\" behind \"%.60s\": a blank has to stand before the first "
                          "attribute, no tab or end of line",
                          name);
    }
    if (c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r') {
      *last = c;
      return 0;
    }
    if (length == NCCL_XML_WORD_MAX - 2) {
      return fail(reader, "a name of more than %d characters", NCCL_XML_WORD_MAX - 2);
    }
    name[length] = c;
  }
  return result;
}

static int skip_comment(struct reader *reader) {
  static const char mark[] = "-->";
  size_t left = (size_t)(reader->end - reader->at);
  const char *end = memmem(reader->at, left, mark, 3);
  if (!end) {
    return fail(reader, "a comment without its end");
  }
  for (const char *c = reader->at; c < end && !strchr(" >/\n\r", *c); c++) {
    if (*c == '=') {
      return fail(reader,
                  "a comment with \"=\" in its first word, which NCCL takes for an attribute");
    }
  }
  for (; reader->at < end + 3; reader->at++) {
    reader->line += *reader->at == '\n';
  }
  return 0;
}

static int take_attributes(struct reader *reader, struct nccl_xml_element *element, char *last) {
  while (*last == ' ') {
    int i = element->count;
    element->attributes[i].value[0] = '\0';
    int result = take_token(reader, element->attributes[i].key, element->attributes[i].value, last);
    if (result < 0) {
      return result;
    }
    element->count += i < NCCL_XML_ATTRIBUTES_MAX;
  }
  return 0;
}

enum tag { TAG_OPEN, TAG_CLOSE, TAG_SINGLE, TAG_NONE };

/* Behind the "<" of a tag that is no comment. */
static int take_tag(struct reader *reader, struct nccl_xml_element *element, enum tag *tag) {
  char last;
  int result = take_token(reader, element->name, NULL, &last);
  if (result == 0 && (element->name[0] == '?' || element->name[0] == '!')) {
    return fail(reader, "<%.20s...>, which NCCL does not read: remove it", element->name);
  }
  *tag = TAG_OPEN;
  if (result == 0 && element->name[0] == '\0' && last == '/') {
    *tag = TAG_CLOSE;
    result = take_token(reader, element->name, NULL, &last);
  } else if (result == 0) {
    result = take_attributes(reader, element, &last);
    if (result == 0 && last == '/') {
      char rest[NCCL_XML_WORD_MAX];
      *tag = TAG_SINGLE;
      result = take_token(reader, rest, NULL, &last);
    }
  }
  if (result == 0 && last != '>') {
    return fail(reader,
                "<%.60s> goes on in the next line, or ends wrong: NCCL wants one blank "
                "between attributes, and \">\"",
                element->name);
  }
  return result;
}

static int take_element(struct reader *reader, struct nccl_xml_element *element, enum tag *tag) {
  for (;;) {
    while (reader->at < reader->end && strchr(" \n\r", *reader->at) && *reader->at) {
      reader->line += *reader->at++ == '\n';
    }
    element->line = reader->line;
    element->count = 0;
    if (reader->at == reader->end) {
      *tag = TAG_NONE;
      return 0;
    }
    if (*reader->at != '<') {
      return fail(reader,
                  "\"%c\" where \"<\" has to be: NCCL takes blanks and ends of lines between "
                  "tags, no tab, text or byte order mark",
                  *reader->at);
    }
    reader->at++;
    if (reader->end - reader->at < 3 || memcmp(reader->at, "!--", 3) != 0) {
      return take_tag(reader, element, tag);
    }
    int result = skip_comment(reader);
    if (result < 0) {
      return result;
    }
  }
}

static bool is_taken(const struct nccl_xml_rule *rules, const char *parent, const char *name) {
  for (; rules->name; rules++) {
    if (strcmp(rules->parent, parent) == 0 && strcmp(rules->name, name) == 0) {
      return true;
    }
  }
  return false;
}

int nccl_xml_read(const char *text, size_t length, const struct nccl_xml_rule *rules,
                  nccl_xml_fn *found, void *context, struct nccl_xml_error *error) {
  struct reader reader = { text, text + length, 1, error };
  struct nccl_xml_element element;
  char open[DEPTH_MAX + 1][NCCL_XML_WORD_MAX] = { "" };
  int depth = 0, passed = 0; /* depth of the one that NCCL passes over; 0: none */
  for (enum tag tag = TAG_NONE;;) {
    int result = take_element(&reader, &element, &tag);
    if (result < 0) {
      return result;
    }
    if (tag == TAG_NONE) {
      return depth == 0 ? 0 : fail(&reader, "the file ends within <%.60s>", open[depth]);
    }
    if (tag == TAG_CLOSE) {
      if (depth == 0 || strcmp(open[depth], element.name) != 0) {
        return fail(&reader, "</%.60s> within <%.60s>", element.name, open[depth]);
      }
      depth--;
      passed = depth < passed ? 0 : passed;
      continue;
    }
    bool is_known = passed == 0 && is_taken(rules, open[depth], element.name);
    if (is_known) {
      found(context, &element);
    }
    if (tag == TAG_OPEN) {
      if (depth == DEPTH_MAX) {
        return fail(&reader, "more than %d elements within each other", DEPTH_MAX);
      }
      strcpy(open[++depth], element.name);
      passed = passed == 0 && !is_known ? depth : passed;
    }
  }
}

const char *nccl_xml_attribute(const struct nccl_xml_element *element, const char *key) {
  for (int i = 0; i < element->count; i++) {
    if (strcmp(element->attributes[i].key, key) == 0) {
      return element->attributes[i].value;
    }
  }
  return NULL;
}
