/* SPDX-License-Identifier: Apache-2.0 */
/* no_path: why a NIC does not reach an address, in words for the user.
 * Owns: nothing.  Threads: any.  Blocks: never; routing tables are asked.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_NO_PATH_H
#define NET_PLUGIN_SETUP_NO_PATH_H

#include <stdbool.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

#define NO_PATH_TEXT 512

/* The errno that a dial ended with, or 0 while nobody has answered; the likely reason; what to do.
 * is_advertised: by the peer, in place of the address of its NIC. */
const char *no_path_text(const struct nic *nic, const struct sockaddr_storage *address,
                         bool is_advertised, int error, char text[NO_PATH_TEXT]);

/* Whether the NIC itself could carry anything: "is up", "has no carrier", "is down", "is gone". */
const char *no_path_nic_state(const struct nic *nic);

#endif
