/* SPDX-License-Identifier: Apache-2.0 */
/* link_check: asserts what must hold of a link between any two calls: the invariants that link.h
 * and link_lane.h state. For whoever tests a link: the simulator and the fuzz targets have it, too.
 */
#ifndef TESTS_LIB_LINK_CHECK_H
#define TESTS_LIB_LINK_CHECK_H

#include "net_plugin/link/link.h"

void link_check(const struct link *link);
/* Of both ends of a connection: what the sender takes for acknowledged the receiver has. Nothing
 * when one of them has left or failed. */
void link_check_both(const struct link *sender, const struct link *receiver);

#endif
