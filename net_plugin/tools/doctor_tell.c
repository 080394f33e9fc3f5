/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_tell.h. */
#include "net_plugin/tools/doctor_tell.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/cli.h"
#include "net_plugin/tools/document.h"

static int told[DOCTOR_BAD + 1];
static json_t *findings; /* NULL: printed as text */

void doctor_tell_begin(bool is_json) {
  findings = is_json ? json_array() : NULL;
}

void doctor_tell(enum doctor_finding finding, const char *format, ...) {
  static const char *const marks[] = { "ok  ", "note", "BAD " };
  static const char *const words[] = { "ok", "note", "bad" };
  char text[DOCTOR_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (findings) {
    json_array_append_new(findings,
                          json_pack("{s:s, s:s}", "finding", words[finding], "text", text));
  } else {
    printf("%s  %s\n", marks[finding], text);
  }
  told[finding]++;
}

int doctor_tell_count(enum doctor_finding finding) {
  return told[finding];
}

int doctor_tell_end(void) {
  int status = CLI_OK;
  if (findings) {
    status =
        document_print(json_pack("{s:b, s:o}", "healthy", !told[DOCTOR_BAD], "findings", findings),
                       JSON_INDENT(2));
  }
  return told[DOCTOR_BAD] ? CLI_FAILED : status;
}
