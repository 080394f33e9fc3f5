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
struct conn_params params_of_listener(const struct settings *settings, unsigned remote_keys);

/* Of ours: the lesser of each; checksums where one side wants them; the codec where both have the
 * same, and no queue pair carries the data: what they carry is placed, and never compressed; the
 * first cipher that both have. */
struct conn_params negotiate(const struct conn_params *ours, const struct conn_params *theirs);

enum lane_cipher params_cipher(const struct conn_params *agreed);

/* A link of this side. paths: the sender's, see policy_config. What is neither agreed nor a setting
 * is left out: the engine's policy.shared, seed, memory for the codec. */
struct link_config negotiate_link(enum link_role role, const struct conn_params *agreed,
                                  const struct settings *settings, unsigned paths);

#endif
