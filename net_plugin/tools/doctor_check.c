/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_check.h. */
#include "net_plugin/tools/doctor_check.h"

#include <stdarg.h>
#include <stdio.h>

void doctor_tell(doctor_tell_fn *tell, enum doctor_finding finding, const char *format, ...) {
  char text[DOCTOR_TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  tell(finding, text);
}
