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

int document_print(json_t *document, size_t flags) {
  bool is_written = document && json_dumpf(document, stdout, flags) == 0 && putchar('\n') != EOF;
  json_decref(document);
  return is_written ? CLI_OK : cli_fail("cannot write the result");
}
