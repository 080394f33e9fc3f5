/* SPDX-License-Identifier: Apache-2.0 */
/* negotiate: what the two sides of a connection agree on, from what each offers. Both compute it,
 * the listening side from the hello and the dialling side from the reply, with the same result.
 * PURE. Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_NEGOTIATE_H
#define NET_PLUGIN_SETUP_NEGOTIATE_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/settings.h"

/* What one side offers, or what was agreed; as link_config's. */
struct terms {
  uint16_t lanes;
  uint32_t chunk_bytes;
  uint32_t eager_bytes;
  uint16_t eager_slots; /* agreed: 0 with eager_bytes 0, and the other way round */
  bool wants_checksums;
  uint8_t remote_keys;
  uint8_t codec; /* version that it can write or read; 0: none */
};

/* Of the dialling side. */
struct terms terms_of_hello(const struct hello *hello);
/* Of the listening side, for itself. It takes any number of lanes and any chunk: the dialling side
 * opens the ones, as long as there are descriptors, and cuts the others. */
struct terms terms_of_listener(const struct settings *settings, unsigned remote_keys);
/* Of the listening side, as its reply says. */
struct terms terms_of_reply(const struct reply *reply);

/* The lesser of each; checksums where one side wants them; the codec where both have the same, and
 * no queue pair carries the data: what they carry is placed, and never compressed. */
struct terms negotiate(const struct terms *ours, const struct terms *theirs);

/* The reply says what was agreed. */
void negotiate_reply(const struct terms *agreed, struct reply *reply);
/* A link of this side. paths: the sender's, see policy_config. What is neither agreed nor a setting
 * is left out: the engine's policy.shared, seed, policy.ablated, memory for the codec. */
struct link_config negotiate_link(enum link_role role, const struct terms *agreed,
                                  const struct settings *settings, unsigned paths);

#endif
