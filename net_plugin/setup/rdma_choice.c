/* SPDX-License-Identifier: Apache-2.0 */
/* See rdma_choice.h. */
#include "net_plugin/setup/rdma_choice.h"

#include <errno.h>
#include <stdatomic.h>

#include "common/log.h"
#include "net_plugin/lane/rdma/rdma_opener.h"
#include "net_plugin/lane/rdma/rdma_qp.h"
#include "net_plugin/link/wire.h"
#include "net_plugin/setup/settings.h"

static atomic_flag is_told = ATOMIC_FLAG_INIT, is_use_told = ATOMIC_FLAG_INIT;

static void tell(const struct nic *nic, const char *why) {
  bool is_first = !atomic_flag_test_and_set(&is_told);
  LOG_AT(is_first ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, "no RDMA through %s, TCP is used: %s",
         nic->name, why);
}

/* NULL: none; *may_come: it is being looked for. */
static struct rdma_device *take_device(const struct nic *nic, bool *may_come) {
  char why[RDMA_WHY_MAX];
  struct rdma_device *device = rdma_opener_take(nic, why);
  *may_come = !device && !why[0];
  if (!device && why[0]) {
    tell(nic, why);
  }
  return device;
}

bool rdma_choice_has_device(const struct nic *nic) {
  bool may_come;
  struct rdma_device *device = take_device(nic, &may_come);
  if (device) {
    rdma_device_close(device);
  }
  return device != NULL;
}

void rdma_choice_wait(const struct nic *nics, unsigned count) {
  struct settings settings;
  settings_get(1, &settings);
  if (!settings.wants_encryption) {
    rdma_opener_wait(nics, count);
  }
}

unsigned rdma_choice_remote_keys(const struct nic *nics, unsigned count) {
  struct settings settings;
  bool is_possible = false;
  settings_get(1, &settings);
  if (settings.wants_encryption) {
    tell(nics, "STRATUS_ENCRYPT is on, and RDMA devices do not encrypt");
    return 0;
  }
  for (unsigned i = 0; i < count && !is_possible; i++) {
    struct rdma_device *device = take_device(&nics[i], &is_possible);
    if (device) {
      is_possible = true;
      rdma_device_close(device);
    }
    is_possible = is_possible || rdma_device_may_come(&nics[i]);
  }
  return is_possible ? WIRE_REMOTE_KEYS : 0;
}

struct rdma_qp *rdma_choice_make(const struct nic *nic, bool is_sender) {
  char why[RDMA_WHY_MAX];
  bool may_come;
  struct rdma_device *device = take_device(nic, &may_come);
  struct rdma_qp *qp = device ? rdma_qp_new(device, is_sender, why) : NULL;
  if (device && !qp) {
    tell(nic, why);
  }
  if (qp && !atomic_flag_test_and_set(&is_use_told)) {
    LOG_INFO("RDMA through %s: device %s, port %u", nic->name, qp->device->port.name,
             qp->device->port.port);
  }
  return qp;
}

int rdma_choice_uses_cm(const struct rdma_qp *qp, const struct rdma_facts *peer, bool *uses_cm) {
  enum rdma_cm_wish ours = qp->device->port.cm, theirs = (enum rdma_cm_wish)peer->cm;
  *uses_cm = ours == RDMA_CM_MUST || theirs == RDMA_CM_MUST;
  if (*uses_cm && (ours == RDMA_CM_NEVER || theirs == RDMA_CM_NEVER)) {
    tell(&qp->device->nic, "STRATUS_RDMA_CM is off on one side and the other needs librdmacm");
    return -EOPNOTSUPP;
  }
  return 0;
}
