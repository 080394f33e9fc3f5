/* SPDX-License-Identifier: Apache-2.0 */
/* handle: what a listener tells its future peer through NCCL's 128 bytes (NCCL_NET_HANDLE_MAXSIZE).
 * PURE.
 *
 *     0 u32 magic   4 u16 wire version   6 u8 addresses   7 zero
 *     8 listener[16]    which listener: travels in clear in every hello
 *    24 secret[16]      only here: what a connection proves to know (auth.h)
 *    40 addresses of { u8 family (4, 6), u16 port, u8[4 or 16] address }, without gaps: all 8 that
 * a device may have if they are IPv4, 4 if they are IPv6 120 u64 attempt
 *
 * The attempt is the connecting side's own: 0 as the listener wrote it, kept by NCCL between calls.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: handle_decode, -EPROTO not a stratus
 * handle, -EPROTONOSUPPORT another wire version. */
#ifndef NET_PLUGIN_SETUP_HANDLE_H
#define NET_PLUGIN_SETUP_HANDLE_H

#include <stdint.h>
#include <sys/socket.h>

#include "net_plugin/lane/nic.h"
#include "net_plugin/setup/auth.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/listener.h"

#define HANDLE_ADDRESSES NIC_MAX_FUSED
enum {
  HANDLE_LISTENER_AT = 8,
  HANDLE_SECRET_AT = HANDLE_LISTENER_AT + TOKEN_BYTES,
  HANDLE_ADDRESSES_AT = HANDLE_SECRET_AT + AUTH_SECRET_BYTES,
  HANDLE_IPV4_BYTES = 1 + 2 + 4,
  HANDLE_IPV6_BYTES = 1 + 2 + 16,
  HANDLE_ATTEMPT_AT = HANDLE_BYTES - 8,
};
_Static_assert(HANDLE_ADDRESSES_AT == 40 && HANDLE_ATTEMPT_AT == 120, "NCCL passes 128 bytes on");
_Static_assert(HANDLE_ADDRESSES_AT + HANDLE_ADDRESSES * HANDLE_IPV4_BYTES <= HANDLE_ATTEMPT_AT &&
                   HANDLE_ADDRESSES_AT + 4 * HANDLE_IPV6_BYTES <= HANDLE_ATTEMPT_AT,
               "as told above");

struct handle {
  uint16_t wire_version;
  uint8_t listener[TOKEN_BYTES];
  uint8_t secret[AUTH_SECRET_BYTES];
  unsigned count;
  struct sockaddr_storage addresses[HANDLE_ADDRESSES];
};

/* How many of the addresses have room: the first ones. */
unsigned handle_encode(const struct handle *handle, uint8_t bytes[HANDLE_BYTES]);
int handle_decode(const uint8_t bytes[HANDLE_BYTES], struct handle *handle);

uint64_t handle_attempt(const uint8_t bytes[HANDLE_BYTES]);
void handle_set_attempt(uint8_t bytes[HANDLE_BYTES], uint64_t attempt);

#endif
