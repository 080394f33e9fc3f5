/* SPDX-License-Identifier: Apache-2.0 */
/* See shown.h. */
#include "net_plugin/tools/shown.h"

#include <stdio.h>

#include "common/cli.h"

const char *shown(const json_t *object, const char *name, char text[SHOWN_MAX]) {
  const char *value = json_string_value(json_object_get(object, name));
  snprintf(text, SHOWN_MAX, "%s", value ? value : "-");
  return cli_plain(text);
}
