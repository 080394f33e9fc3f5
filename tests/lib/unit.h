/* SPDX-License-Identifier: Apache-2.0 */
/* unit: what every unit test includes to use cmocka.
 *
 * cmocka.h needs these headers before it and does not include them itself. */
#ifndef TESTS_LIB_UNIT_H
#define TESTS_LIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
