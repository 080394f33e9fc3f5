/* SPDX-License-Identifier: Apache-2.0 */
/* time_units: nanoseconds, for code that is given the time, too. */
#ifndef COMMON_TIME_UNITS_H
#define COMMON_TIME_UNITS_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#endif
