/* SPDX-License-Identifier: Apache-2.0 */
/* See sanitize.h. */
#include "net_plugin/tools/sanitize.h"

#include <stdio.h>

#include "common/plain.h"

const char *sanitize_member(const json_t *object, const char *name, char text[SANITIZE_MAX]) {
  const char *value = json_string_value(json_object_get(object, name));
  snprintf(text, SANITIZE_MAX, "%s", value ? value : "-");
  return plain_text(text);
}
