/* SPDX-License-Identifier: Apache-2.0 */
/* load: measures the path between two hosts by a plain TCP connection, its round trip time and
 * whether packets of full length pass, then the rate of one connection of the plugin. Owns: the
 * serving side's listeners, until load_serve. Threads: the main thread.  Blocks: for as long as the
 * measurement takes, and RENDEZVOUS_TIMEOUT_NS for a peer that does not connect.  Fails: negative
 * errno. */
#ifndef NET_PLUGIN_TOOLS_PROBE_LOAD_H
#define NET_PLUGIN_TOOLS_PROBE_LOAD_H

#include "common/peer_gate.h"
#include "net_plugin/plugin/device.h"
#include "net_plugin/setup/listener.h"
#include "net_plugin/tools/probe/probe.h"

/* The receiver. */
struct load_service {
  struct listener *listener;
  int ping_server;
  struct peer_gate *gate; /* lets in who has the handle, to `ping_server` */
  struct peer_key key;
  uint8_t handle[HANDLE_BYTES]; /* for the sender */
  int ping_port;
};
int load_offer(const struct device *device, struct load_service *service);
int load_serve(struct load_service *service, bool is_path_only);

/* The sender. */
int load_send(const struct device *device, uint8_t handle[HANDLE_BYTES], int ping_port,
              const struct probe_load *load, struct probe_result *result);

#endif
