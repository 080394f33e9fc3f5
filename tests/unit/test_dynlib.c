/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are there, are not there, are too old. */
#include "common/dynlib.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/unit.h"

struct math_functions {
  double (*cos)(double);
  double (*pow)(double, double);
  double (*no_such_function)(double);
};

static const struct dynlib_symbol good_symbols[] = {
  DYNLIB_REQUIRED(struct math_functions, cos),
  { "pow", NULL, offsetof(struct math_functions, pow), true },
  DYNLIB_OPTIONAL(struct math_functions, no_such_function),
  { 0 },
};

static struct math_functions functions; /* of the library opened last */
static struct dynlib lib;

static int open_lib(const char *const *sonames, const struct dynlib_symbol *symbols) {
  memset(&functions, 0xff, sizeof functions);
  return dynlib_open(&lib, sonames, symbols, &functions);
}

UNIT_TEST(functions_are_filled_in) {
  static const char *const sonames[] = { "libstratus-is-not-there.so.1", "libm.so.6", NULL };
  assert_int_equal(open_lib(sonames, good_symbols), 0);
  assert_string_equal(lib.soname, "libm.so.6");
  assert_string_equal(lib.reason, "");
  assert_true(functions.cos(0.0) == 1.0);
  assert_true(functions.pow(2.0, 3.0) == 8.0);
  assert_null(functions.no_such_function);
  dynlib_close(&lib);
  assert_null(lib.handle);
  dynlib_close(&lib); /* does nothing */
}

UNIT_TEST(missing_library_has_a_reason) {
  static const char *const sonames[] = { "libstratus-one.so", "libstratus-two.so", NULL };
  assert_int_equal(open_lib(sonames, good_symbols), -ENOENT);
  assert_non_null(strstr(lib.reason, "libstratus-one.so"));
  assert_non_null(strstr(lib.reason, "libstratus-two.so"));
  assert_null(lib.handle);
  assert_null(functions.cos);
}

UNIT_TEST(missing_function_names_itself) {
  static const char *const sonames[] = { "libm.so.6", NULL };
  static const struct dynlib_symbol symbols[] = {
    DYNLIB_REQUIRED(struct math_functions, cos),
    DYNLIB_REQUIRED(struct math_functions, no_such_function),
    { 0 },
  };
  assert_int_equal(open_lib(sonames, symbols), -ENOSYS);
  assert_non_null(strstr(lib.reason, "libm.so.6 has no function no_such_function"));
  assert_null(functions.cos);
  assert_null(lib.handle);
}

UNIT_TEST(symbol_versions_are_honoured) {
  static const char *const sonames[] = { "libm.so.6", NULL };
  static const struct dynlib_symbol symbols[] = {
    { "pow", "STRATUS_NO_SUCH_VERSION", offsetof(struct math_functions, pow), false },
    { 0 },
  };
  assert_int_equal(open_lib(sonames, symbols), 0);
  assert_null(functions.pow);
  dynlib_close(&lib);
}

UNIT_TEST(long_reasons_are_cut) {
  char name[256];
  const char *sonames[9] = { 0 };
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (size_t i = 0; i < 8; i++) {
    sonames[i] = name;
  }
  assert_int_equal(open_lib(sonames, good_symbols), -ENOENT);
  assert_int_equal(strlen(lib.reason), DYNLIB_REASON_MAX - 1);
}
