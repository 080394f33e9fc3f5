/* SPDX-License-Identifier: Apache-2.0 */
/* addresses: where a listener is reached, between sockets and the bytes of a handle or a reply
 * (struct address_list of handshake.h).
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: addresses_unpack. */
#ifndef NET_PLUGIN_SETUP_ADDRESSES_H
#define NET_PLUGIN_SETUP_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/handshake.h"

_Static_assert(ADDRESSES_MAX == NIC_MAX_FUSED, "each NIC of a device has one");

size_t address_packed_bytes(const struct sockaddr_storage *address);
/* They must have room. */
void addresses_pack(const struct sockaddr_storage *list, unsigned count, uint8_t *bytes,
                    size_t room);
/* -EPROTO: not so many addresses, or no zeros behind them. */
int addresses_unpack(const uint8_t *bytes, size_t room, unsigned count,
                     struct sockaddr_storage list[ADDRESSES_MAX]);
/* How many a reply lists that was decoded; 0: it has none. */
unsigned addresses_of_reply(const struct reply *reply, struct sockaddr_storage list[ADDRESSES_MAX]);

#endif
