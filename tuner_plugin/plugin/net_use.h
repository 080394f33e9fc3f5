/* SPDX-License-Identifier: Apache-2.0 */
/* net_use: does NCCL send over stratus in this process? NCCL goes on without a net plugin that it
 * cannot load, that finds no NIC, or whose name it has forgotten (2.28.3 to 2.29.7,
 * net_plugin/plugin/default_name.h), and a tuner hears nothing of that. Profiles are measured over
 * stratus. Owns: nothing.  Threads: any.  Blocks: as the loader does. */
#ifndef TUNER_PLUGIN_PLUGIN_NET_USE_H
#define TUNER_PLUGIN_PLUGIN_NET_USE_H

enum net_use {
  NET_USE_OTHER,   /* nobody asked for stratus */
  NET_USE_STRATUS, /* the net plugin is loaded, and communicators use it */
  NET_USE_LOST     /* it was asked for or has been in use, and no communicator uses it now */
};

/* Of this moment: NCCL starts a communicator's network before its tuner. */
enum net_use net_use_find(void);

#endif
