/* SPDX-License-Identifier: Apache-2.0 */
/* negotiate: what the two sides of a connection agree on, from what each offers. Both compute it,
 * the listening side from the hello and the dialling side from the reply, with the same result.
 * PURE. Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_NEGOTIATE_H
#define NET_PLUGIN_SETUP_NEGOTIATE_H

#include "net_plugin/lane/lane_crypto.h"
#include "net_plugin/link/link.h"
#include "net_plugin/setup/handshake.h"
#include "net_plugin/setup/settings.h"

/* What the listening side offers. It takes any number of lanes and any chunk: the dialling side
 * opens the ones, as long as there are descriptors, and cuts the others. */
struct terms terms_of_listener(const struct settings *settings, unsigned remote_keys);

/* The lesser of each; checksums where one side wants them; the codec where both have the same, and
 * no queue pair carries the data: what they carry is placed, and never compressed; the first cipher
 * that both have. */
struct terms negotiate(const struct terms *ours, const struct terms *theirs);

enum lane_cipher terms_cipher(const struct terms *agreed);

/* A link of this side. paths: the sender's, see policy_config. What is neither agreed nor a setting
 * is left out: the engine's policy.shared, seed, memory for the codec. */
struct link_config negotiate_link(enum link_role role, const struct terms *agreed,
                                  const struct settings *settings, unsigned paths);

#endif
