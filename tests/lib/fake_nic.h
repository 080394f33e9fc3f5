/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nic: NICs and addresses from how people write them.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: the test, for what is no address. */
#ifndef TESTS_LIB_FAKE_NIC_H
#define TESTS_LIB_FAKE_NIC_H

#include "net_plugin/lane/nic.h"

/* "10.0.0.1" or "fd70::1". */
struct sockaddr_storage fake_nic_address(const char *text);

/* All else is 0. */
struct nic fake_nic(const char *name, const char *address, unsigned prefix_bits);

#endif
