/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: one end of a path that is better than a TCP flow and needs a device: an RDMA queue
 * pair. Set-up makes endpoints, offers them to the peer in a handshake, and connects them; the
 * lane that is opened over an endpoint (lane.h) owns it from then on.
 *
 *   dialling side, which sends the data           listening side
 *     endpoint_offer ------------- offer ------->   endpoint_accept, until result is 0
 *     endpoint_connect  <-- offer and port ------   endpoint_describe
 *     until result is 0                             [the lane waits for the peer]
 *
 * Drivers may take long, and the holder of the engine lock must not wait for them: a worker calls
 * them, and endpoint_fd becomes readable when there is a result.
 *
 * Endpoints are connected by a protocol of the transport's own, at the port in the answer.
 *
 * There is one transport, lane/rdma (rdma_endpoint.c).
 *
 * Owns: its device's objects, until endpoint_free or until a lane has it.  Threads: one at a time
 * for each endpoint; what takes NICs: any.  Blocks: endpoint_wait and find, up to 15 s;
 * endpoint_stop_all; endpoint_stop as a driver does when it stops a queue pair; the others never.
 * Fails: without an endpoint the lane is a TCP flow. The reason is logged once for each NIC, then
 * traced. */
#ifndef NET_PLUGIN_LANE_ENDPOINT_H
#define NET_PLUGIN_LANE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/lane_memory.h"
#include "net_plugin/lane/lane_offer.h"
#include "net_plugin/lane/nic.h"

/* ---- devices ---- */

/* From now on with the settings of the environment. Why NICs had no device is forgotten, devices
 * that are open stay as they are. */
void endpoint_configure(void);
/* Does NCCL_IB_HCA choose devices? Then it also chooses the NICs, for discovery. */
bool endpoint_names_devices(void);
/* The device of the NIC, for people: "mlx5_0 port 1 (RoCE)"; false: why it has none that may be
 * used now. Opens it, as endpoint_wait does. */
enum { ENDPOINT_TEXT_MAX = 256 };
bool endpoint_find(const struct nic *nic, char text[ENDPOINT_TEXT_MAX]);
/* Opens the devices of these NICs in the background and waits for that, but not for long. Not with
 * the engine's lock. is_encrypted: devices do not encrypt, so nothing is opened. */
void endpoint_wait(const struct nic *nics, unsigned count, bool is_encrypted);
/* How many keys of a target (link.h) this side can use or grant: 0 if none of these NICs has a
 * device, or data is encrypted. A device that does not work now may do so later, and a connection
 * keeps its number of keys. */
unsigned endpoint_remote_keys(const struct nic *nics, unsigned count, bool is_encrypted);
/* Could an endpoint be made now? And what to tell the peer then. */
bool endpoint_offer(const struct nic *nic, struct lane_offer *offer);
/* After the last engine has stopped: destroys what is left, ends all threads, and closes the
 * devices that have no users. */
void endpoint_stop_all(void);

/* ---- one endpoint ---- */

/* What connections and handshakes see of it; the transport's own struct begins with this. */
struct endpoint {
  struct lane_domain domain;
  uint16_t port;     /* after endpoint_accept: what the peer's endpoint_connect needs */
  uint8_t key_index; /* which key of a target is for the domain; the receiving side sets it before
                        endpoint_describe */
};

/* What it is connected to. */
struct endpoint_peer {
  const struct lane_offer *offer; /* valid, and not none */
  const struct lane_tokens *tokens;
  int fd;   /* the socket of the handshake: its addresses are those of the NICs */
  int dscp; /* -1: none */
};

/* Both begin to make a new endpoint: see endpoint_result. NULL: the NIC has no device now, or
 * one of another kind. port: the one in the answer. */
struct endpoint *endpoint_accept(const struct nic *nic, const struct endpoint_peer *peer);
struct endpoint *endpoint_connect(const struct nic *nic, const struct endpoint_peer *peer,
                                  uint16_t port);
/* Readable when there is a result. It stays the same. */
int endpoint_fd(const struct endpoint *endpoint);
/* 0: what accepts listens, what connects is connected. Negative errno: the endpoint is of no use,
 * also after a 0. -EINPROGRESS: neither yet. */
int endpoint_result(struct endpoint *endpoint);
/* After endpoint_result was 0. */
void endpoint_describe(const struct endpoint *endpoint, struct lane_offer *offer);
/* 0: from now on no peer writes memory through it. -ENOTRECOVERABLE, after LOG_WARN: one still may,
 * so the peer must not get CLOSED for the lane, and the link must fail. NULL: nothing happens. */
int endpoint_stop(struct endpoint *endpoint);
/* Whatever a worker is about; it does what drivers have to. One whose peer may have used it
 * is stopped before. NULL: nothing happens. */
void endpoint_free(struct endpoint *endpoint);

#endif
