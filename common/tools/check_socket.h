/* SPDX-License-Identifier: Apache-2.0 */
/* check_socket: where stratus-run --check hears the processes of its job.
 * Owns: the socket, until the process ends.  Threads: one.
 * Blocks: never, but check_socket_name_of for CHECK_NAME_MS.  Fails: negative errno. */
#ifndef COMMON_TOOLS_CHECK_SOCKET_H
#define COMMON_TOOLS_CHECK_SOCKET_H

#include "common/tools/verdict.h"

/* Opens the socket and sets STRATUS_CHECK for the job. Returns the descriptor. */
int check_socket_open(void);

/* Takes all events that have arrived. */
void check_socket_read(int fd, struct verdict *verdict, uint64_t now_ns);

/* The host name of an address, from /etc/hosts or a name server; NULL: it has none. The text lives
 * until the next call. */
const char *check_socket_name_of(const char *address);

#endif
