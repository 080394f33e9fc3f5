/* SPDX-License-Identifier: Apache-2.0 */
/* handle: what a listener passes to its future peer in NCCL's 128 bytes (NCCL_NET_HANDLE_MAXSIZE),
 * and addresses as they are sent. PURE.
 *
 *     0 u32 magic   4 u16 wire version   6 u8 which addresses are advertised   7 u8 0
 *     8 listener[16]    which listener: travels in clear in every hello
 *    24 secret[16]      only here: what a connection proves to know (auth.h)
 *    40 4 addresses (struct wire_address)[72]   112 u64 pending connect   120 zeros
 *
 * Of more than 4 there are the first ones, and one of each family; then the reply to the first
 * hello lists them all. An advertised one (STRATUS_ADVERTISE_ADDRESS) has its bit set, for messages
 * alone.
 *
 * The pending connect is the connecting side's own: 0 as the listener wrote it, kept by NCCL
 * between calls. Owns: nothing.  Threads: any.  Blocks: never.  Fails: handle_decode, -EPROTO not a
 * stratus handle, -EPROTONOSUPPORT another wire version. */
#ifndef NET_PLUGIN_SETUP_HANDLE_H
#define NET_PLUGIN_SETUP_HANDLE_H

#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"

enum { HANDLE_LISTENER_AT = 8, HANDLE_PENDING_AT = 112, HANDLE_ADDRESSES = 4 };
_Static_assert(ADDRESSES_MAX == NIC_MAX_FUSED, "each NIC of a device has one");

struct handle {
  uint16_t wire_version;
  uint8_t listener[TOKEN_BYTES];
  uint8_t secret[AUTH_SECRET_BYTES];
  unsigned count;
  struct sockaddr_storage addresses[ADDRESSES_MAX];
  uint8_t advertised; /* bits */
};

void address_to_wire(const struct sockaddr_storage *address, struct wire_address *wire);
/* False: there is none, and *address stays. */
bool address_from_wire(const struct wire_address *wire, struct sockaddr_storage *address);
/* How many a reply lists; 0: it has none, and the list stays. */
unsigned addresses_of_reply(const struct reply *reply, struct sockaddr_storage list[ADDRESSES_MAX]);

/* How many of the addresses it holds. */
unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]);
int handle_decode(const uint8_t bytes[HANDLE_BYTES], struct handle *handle);

uint64_t handle_pending(const uint8_t bytes[HANDLE_BYTES]);
void handle_set_pending(uint8_t bytes[HANDLE_BYTES], uint64_t pending);

#endif
