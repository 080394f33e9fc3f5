/* SPDX-License-Identifier: Apache-2.0 */
/* load: measures the path between two hosts by a plain TCP connection, its round trip time and
 * whether packets of full length pass, then the rate of one connection of the plugin, driven as
 * `stratus perf` drives one. Owns: the receiver's listener and the sender's connection, as each
 * function says. Threads: the main thread.  Blocks: for as long as the measurement takes, and
 * LOAD_DIAL_NS for a receiver that does not answer.  Fails: negative errno. */
#ifndef NET_PLUGIN_TOOLS_PROBE_LOAD_H
#define NET_PLUGIN_TOOLS_PROBE_LOAD_H

#include "common/peer_proof.h"
#include "net_plugin/plugin/device.h"
#include "net_plugin/setup/setup.h"
#include "net_plugin/tools/probe/results.h"

/* The receiver. */
struct load_service {
  struct peer_listener listener; /* its key is of who has the handle */
  uint8_t handle[HANDLE_BYTES];  /* for the sender: the server's address, and a secret */
};
int load_offer(const struct device *device, struct load_service *service);
/* With a sender that is connected: its connection waits in the listener's queue. Closes the
 * listener; without a sender peer_listener_close does. The sender notices what fails. */
void load_serve(struct load_service *service, const struct probe_load *load);

/* The sender. Its connection, with the path's MTU in `result`; or negative errno. */
int load_dial(const struct device *device, const uint8_t handle[HANDLE_BYTES],
              struct probe_result *result);
/* Closes the connection. result->error says more than the number, or nothing. */
int load_send(int fd, const uint8_t handle[HANDLE_BYTES], const struct probe_load *load,
              struct probe_result *result);

#endif
