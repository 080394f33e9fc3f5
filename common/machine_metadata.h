/* SPDX-License-Identifier: Apache-2.0 */
/* machine_metadata: asks the metadata service of a cloud for the instance type.
 * Owns: nothing.  Threads: any.  Blocks: for at most the timeout in total.
 * Fails: -ENOTSUP for a cloud without one, -ETIMEDOUT, -EPROTO for an answer that is no instance
 * type, and errors of sockets. */
#ifndef COMMON_MACHINE_METADATA_H
#define COMMON_MACHINE_METADATA_H

#include <stdint.h>

#include "common/machine.h"

struct machine_metadata_place {
  const char *address; /* IPv4 */
  uint16_t port;
};

/* place NULL: the address of the cloud's service. */
int machine_metadata_ask(enum machine_cloud cloud, const struct machine_metadata_place *place,
                         uint64_t timeout_ns, char instance_type[MACHINE_TEXT_MAX]);

#endif
