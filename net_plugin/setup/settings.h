/* SPDX-License-Identifier: Apache-2.0 */
/* settings: what this side wants for its connections, from parameters and profile, and its
 * identity. Owns: the values taken from a profile, the identity.  Threads: any; settings_use_*
 * before the first connection. Blocks: never.  Fails: cannot. */
#ifndef NET_PLUGIN_SETUP_SETTINGS_H
#define NET_PLUGIN_SETUP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/link/link.h"
#include "net_plugin/setup/handshake.h"

struct profile;

struct settings {
  /* learns_lanes: neither the user nor the policy sets how many. compress OFF: compressed chunks
   * are not taken either. paths and shared are not settings. */
  struct policy_config policy;
  struct conn_params
      params; /* the identity, and what it offers when it dials, but for remote_keys */
  uint64_t link_timeout_ns, stopped_timeout_ns, connect_timeout_ns;
  bool wants_encryption; /* params.ciphers is 0 also if none works here */
};

/* The net part of a profile gives defaults that parameters override. NULL: none. */
void settings_use_profile(const struct profile *profile);

/* nics: how many the device has; each gets its share of the lanes. */
void settings_get(unsigned nics, struct settings *settings);
/* The connection is one of a group that sends to so many peers at the same time; 0: of none. Unless
 * the user set their number, these share twice the lanes of one connection, and where that is less
 * for each than otherwise it is not learned. Evidence: collnet/README.md, "Flows". */
void settings_of_group(unsigned nics, unsigned group_peers, struct settings *settings);

/* What the listening side offers. It takes any number of lanes and any chunk: the dialling side
 * opens the ones, as long as there are descriptors, and cuts the others. */
struct conn_params settings_of_listener(const struct settings *settings, unsigned remote_keys);
/* A link of this side. paths: the sender's, see policy_config. What is neither agreed nor a setting
 * is left out: the engine's policy.shared, seed, memory for the codec. */
struct link_config settings_of_link(enum link_role role, const struct conn_params *agreed,
                                    const struct settings *settings, unsigned paths);

/* What its ranks decide by (decision.h). */
void settings_use_decision(const struct decision *decision);
/* Who this side is: decision, process and host; the rest is zero. The process is a random number,
 * as host names and pids may be equal, in containers. */
const struct conn_params *settings_identity(void);

#endif
