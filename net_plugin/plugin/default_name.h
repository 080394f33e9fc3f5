/* SPDX-License-Identifier: Apache-2.0 */
/* default_name: makes this plugin the one that the loader finds as libnccl-net.so, for releases of
 * NCCL that ask for it by that name.
 *
 * NCCL 2.28.3 to 2.29.7 unload a plugin with its last communicator and clear all that they know of
 * it, the name from NCCL_NET_PLUGIN too (ncclNetPluginUnload, src/plugin/net.cc;
 * github.com/NVIDIA/nccl/issues/1978). The process's next communicator then asks the loader for the
 * default, libnccl-net.so, finds none, and uses Socket. What is loaded under that name is found
 * before any file: so an empty library of that name is loaded, which needs this one, and brings its
 * tables.
 *
 * Owns: the library, for the life of the process.  Threads: any, one at a time.  Blocks: as the
 * loader does. */
#ifndef NET_PLUGIN_PLUGIN_DEFAULT_NAME_H
#define NET_PLUGIN_PLUGIN_DEFAULT_NAME_H

/* `nccl_version` as ncclGetVersion counts. Does nothing for releases that keep the name; where it
 * fails, the tuner tells that NCCL has gone on without stratus. */
void default_name_take(int nccl_version);

#endif
