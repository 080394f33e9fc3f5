/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's contract for plugins (its plugins/net/README.md, "Error codes"): ncclSystemError when a
 * local call failed, ncclRemoteError when the peer closed the connection, ncclInternalError for
 * bugs in NCCL or plugin, ncclInvalidUsage for what the user has to change. */
#include "net_plugin/abi/result.h"

#include <errno.h>

enum nccl_result result_from_errno(int error) {
  switch (-error) {
  case 0:
    return NCCL_SUCCESS;
  case ECONNRESET:
  case ECONNABORTED:
  case ECONNREFUSED:
  case EPIPE:
  case ETIMEDOUT:
  case ENOTCONN:
  case ESHUTDOWN:
  case EHOSTDOWN:
  case ETIME:
  case ENETRESET:
  case EREMOTEIO:
  case ECOMM:
  case ESRCH:
    return NCCL_REMOTE_ERROR;
  case EPROTO:          /* the peer's configuration does not fit */
  case EPROTONOSUPPORT: /* the peer speaks another version */
  case EMSGSIZE:        /* the peer sends more than was asked for */
  case EACCES:          /* the peer has another secret, or what protects cannot */
    return NCCL_INVALID_USAGE;
  case EINVAL:
  case EFAULT:
  case ERANGE:
  case ENOTSUP:
    return NCCL_INTERNAL_ERROR;
  default:
    return NCCL_SYSTEM_ERROR;
  }
}
