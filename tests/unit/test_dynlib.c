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

static void functions_are_filled_in(void **state) {
  (void)state;
  static const char *const sonames[] = { "libstratus-is-not-there.so.1", "libm.so.6", NULL };
  struct math_functions functions;
  struct dynlib lib;
  memset(&functions, 0xff, sizeof functions);
  assert_int_equal(dynlib_open(&lib, sonames, good_symbols, &functions), 0);
  assert_string_equal(lib.soname, "libm.so.6");
  assert_string_equal(lib.reason, "");
  assert_true(functions.cos(0.0) == 1.0);
  assert_true(functions.pow(2.0, 3.0) == 8.0);
  assert_null(functions.no_such_function);
  dynlib_close(&lib);
  assert_null(lib.handle);
  dynlib_close(&lib); /* does nothing */
}

static void missing_library_has_a_reason(void **state) {
  (void)state;
  static const char *const sonames[] = { "libstratus-one.so", "libstratus-two.so", NULL };
  struct math_functions functions;
  struct dynlib lib;
  memset(&functions, 0xff, sizeof functions);
  assert_int_equal(dynlib_open(&lib, sonames, good_symbols, &functions), -ENOENT);
  assert_non_null(strstr(lib.reason, "libstratus-one.so"));
  assert_non_null(strstr(lib.reason, "libstratus-two.so"));
  assert_null(lib.handle);
  assert_null(functions.cos);
}

static void missing_function_names_itself(void **state) {
  (void)state;
  static const char *const sonames[] = { "libm.so.6", NULL };
  static const struct dynlib_symbol symbols[] = {
    DYNLIB_REQUIRED(struct math_functions, cos),
    DYNLIB_REQUIRED(struct math_functions, no_such_function),
    { 0 },
  };
  struct math_functions functions;
  struct dynlib lib;
  assert_int_equal(dynlib_open(&lib, sonames, symbols, &functions), -ENOSYS);
  assert_non_null(strstr(lib.reason, "libm.so.6 has no function no_such_function"));
  assert_null(functions.cos);
  assert_null(lib.handle);
}

static void symbol_versions_are_honoured(void **state) {
  (void)state;
  static const char *const sonames[] = { "libm.so.6", NULL };
  static const struct dynlib_symbol symbols[] = {
    { "pow", "STRATUS_NO_SUCH_VERSION", offsetof(struct math_functions, pow), false },
    { 0 },
  };
  struct math_functions functions;
  struct dynlib lib;
  assert_int_equal(dynlib_open(&lib, sonames, symbols, &functions), 0);
  assert_null(functions.pow);
  dynlib_close(&lib);
}

static void long_reasons_are_cut(void **state) {
  (void)state;
  char name[256];
  const char *sonames[9] = { 0 };
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (size_t i = 0; i < 8; i++) {
    sonames[i] = name;
  }
  struct math_functions functions;
  struct dynlib lib;
  assert_int_equal(dynlib_open(&lib, sonames, good_symbols, &functions), -ENOENT);
  assert_int_equal(strlen(lib.reason), DYNLIB_REASON_MAX - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_filled_in),       cmocka_unit_test(missing_library_has_a_reason),
    cmocka_unit_test(missing_function_names_itself), cmocka_unit_test(symbol_versions_are_honoured),
    cmocka_unit_test(long_reasons_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
