/* SPDX-License-Identifier: Apache-2.0 */
/* advertise: STRATUS_ADVERTISE_ADDRESS, at which addresses other hosts dial our NICs: where those
 * are translated on the way, or where the host has one address of its own for all NICs, as on its
 * loopback interface.
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: -EINVAL, after LOG_WARN. */
#ifndef NET_PLUGIN_PLUGIN_ADVERTISE_H
#define NET_PLUGIN_PLUGIN_ADVERTISE_H

#include "net_plugin/plugin/interface.h"

/* Is it an address of this host? route_is_own, but for tests. */
typedef bool advertise_is_own_fn(const struct sockaddr_storage *address);

/* `text`: one address, or a list as in "eth0=203.0.113.7,eth1=203.0.113.8"; empty: none. The chosen
 * interfaces get it: one of this host in place of their own address, another one beside it. After
 * an error none is changed. Flows from an address of the host are not bound to a NIC: answers come
 * in by any of those that routes lead through. */
int advertise_apply(const char *text, struct interface *list, size_t count,
                    advertise_is_own_fn *is_own);

#endif
