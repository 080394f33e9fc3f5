/* SPDX-License-Identifier: Apache-2.0 */
/* handle: what a listener passes to its future peer in NCCL's 128 bytes (NCCL_NET_HANDLE_MAXSIZE).
 * PURE.
 *
 *     0 u32 magic   4 u16 wire version   6 u8 addresses   7 u8 which of them are advertised
 *     8 listener[16]    which listener: travels in clear in every hello
 *    24 secret[16]      only here: what a connection proves to know (auth.h)
 *    40 addresses (struct address_list of handshake.h)[80]   120 u64 pending connect
 *
 * All 8 addresses that a device may have have room if they are IPv4, 4 if they are IPv6. Where not
 * all have, there is one of each family, and the reply to the first hello lists them all.
 *
 * An advertised one (STRATUS_ADVERTISE_ADDRESS) has its bit set, for messages alone.
 *
 * The pending connect is the connecting side's own: 0 as the listener wrote it, kept by NCCL
 * between calls. Owns: nothing.  Threads: any.  Blocks: never.  Fails: handle_decode, -EPROTO not a
 * stratus handle, -EPROTONOSUPPORT another wire version. */
#ifndef NET_PLUGIN_SETUP_HANDLE_H
#define NET_PLUGIN_SETUP_HANDLE_H

#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/setup/addresses.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/listener.h"

enum {
  HANDLE_LISTENER_AT = 8,
  HANDLE_SECRET_AT = HANDLE_LISTENER_AT + TOKEN_BYTES,
  HANDLE_ADDRESSES_AT = HANDLE_SECRET_AT + AUTH_SECRET_BYTES,
  HANDLE_PENDING_AT = HANDLE_BYTES - 8,
  HANDLE_ROOM = HANDLE_PENDING_AT - HANDLE_ADDRESSES_AT, /* for addresses */
};
_Static_assert(HANDLE_ADDRESSES_AT == 40 && HANDLE_PENDING_AT == 120, "NCCL passes 128 bytes on");
_Static_assert(ADDRESSES_MAX *ADDRESS_IPV4_BYTES <= HANDLE_ROOM &&
                   4 * ADDRESS_IPV6_BYTES <= HANDLE_ROOM,
               "as drawn above");

struct handle {
  uint16_t wire_version;
  uint8_t listener[TOKEN_BYTES];
  uint8_t secret[AUTH_SECRET_BYTES];
  unsigned count;
  struct sockaddr_storage addresses[ADDRESSES_MAX];
  uint8_t advertised; /* bits */
};

/* How many of the addresses it holds. */
unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]);
int handle_decode(const uint8_t bytes[HANDLE_BYTES], struct handle *handle);

uint64_t handle_pending(const uint8_t bytes[HANDLE_BYTES]);
void handle_set_pending(uint8_t bytes[HANDLE_BYTES], uint64_t pending);

#endif
