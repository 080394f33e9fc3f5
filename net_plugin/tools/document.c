/* SPDX-License-Identifier: Apache-2.0 */
/* See document.h. */
#include "net_plugin/tools/document.h"

#include <stdio.h>

#include "common/cli.h"
#include "common/plain.h"

const char *document_text(const json_t *object, const char *name, char text[DOCUMENT_TEXT_MAX]) {
  const char *value = json_string_value(json_object_get(object, name));
  snprintf(text, DOCUMENT_TEXT_MAX, "%s", value ? value : "-");
  return plain_text(text);
}

const json_t *document_counterpart(const json_t *array, const json_t *element, const char *key) {
  size_t i;
  json_t *other;
  json_array_foreach(array, i, other) {
    if (json_equal(json_object_get(other, key), json_object_get(element, key))) {
      return other;
    }
  }
  return NULL;
}

int document_print(json_t *document, size_t flags) {
  bool is_whole = document && json_dumpf(document, stdout, flags | JSON_ENSURE_ASCII) == 0;
  putchar('\n');
  json_decref(document);
  return is_whole || ferror(stdout) ? CLI_OK : cli_fail("out of memory");
}
