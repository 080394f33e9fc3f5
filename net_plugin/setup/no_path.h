/* SPDX-License-Identifier: Apache-2.0 */
/* no_path: why a NIC does not reach an address, in words for the user.
 * Owns: nothing.  Threads: any.  Blocks: never; routing tables are asked.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_NO_PATH_H
#define NET_PLUGIN_SETUP_NO_PATH_H

#include <sys/socket.h>

#include "net_plugin/lane/nic.h"

#define NO_PATH_TEXT 512

enum no_path_address {
  NO_PATH_OF_NIC,     /* as far as is known */
  NO_PATH_OWN,        /* one of this host's, too */
  NO_PATH_ADVERTISED, /* by the peer, in place of its NIC's */
};

/* The errno that a dial ended with, or 0 while nobody has answered; the likely reason; what to do.
 */
const char *no_path_text(const struct nic *nic, const struct sockaddr_storage *address,
                         enum no_path_address kind, int error, char text[NO_PATH_TEXT]);

#endif
