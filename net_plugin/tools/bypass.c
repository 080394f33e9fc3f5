/* SPDX-License-Identifier: Apache-2.0 */
/* Facts from NVIDIA/nccl: src/gin/gin_host.cc and src/rma/rma_proxy.cc at v2.28.9-1, v2.29.7-1 and
 * v2.30.7-1, src/plugin/rma.cc at 8898068 (2.31.2) and 12df1a1 (2.32.3), src/misc/crypt.cc at
 * 12df1a1. GIN and RMA have plugin interfaces of their own, which stratus does not have. */
#include "net_plugin/tools/doctor_check.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  FIRST_GIN = 22807,           /* the first with GIN */
  FIRST_RMA = 22902,           /* ncclPutSignal; up to 2.30.4 not without GIN */
  FIRST_SYMMETRIC_GIN = 22907, /* src/sym_kernels.cc: not at v2.29.3-1 yet */
  FIRST_RMA_DISABLE = 23007,   /* NCCL_RMA_DISABLE; zero-CTA collectives between hosts, by RMA */
  FIRST_SOCKETS = 23203,       /* GIN and RMA over sockets, and TLS */
};

/* As NCCL_PARAM reads a number: a word counts as 0. */
static bool is_zero(const char *name, bool otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtoll(text, NULL, 0) == 0 : otherwise;
}

static bool has_gin(int release) {
  return release >= FIRST_GIN && !is_zero("NCCL_GIN_ENABLE", false);
}

static bool has_rma(int release) {
  if (release < FIRST_RMA_DISABLE) {
    return release >= FIRST_RMA && has_gin(release);
  }
  return is_zero("NCCL_RMA_DISABLE", true);
}

/* Words with | between them, or a digit. */
static bool is_zero_cta_wanted(void) {
  const char *text = getenv("NCCL_CTA_POLICY");
  if (!text || *text == '2') {
    return text != NULL;
  }
  while (*text) {
    size_t length = strcspn(text, "|");
    if (length == 4 && strncasecmp(text, "ZERO", length) == 0) {
      return true;
    }
    text += length + strspn(text + length, "|");
  }
  return false;
}

static void tell_of_encryption(const struct bypass_facts *facts, const char *way) {
  if (facts->release >= FIRST_SOCKETS && !facts->is_encrypted) {
    doctor_tell(DOCTOR_HINT,
                "the TLS of this NCCL (ncclSetEncryption) covers its bootstrap and its own "
                "sockets, not plugins: what goes through stratus is in clear, unless "
                "STRATUS_ENCRYPT=on");
  }
  if (way && facts->is_encrypted) {
    doctor_tell(DOCTOR_HINT,
                "STRATUS_ENCRYPT=on covers what goes through stratus: GIN and RMA are in clear, "
                "but for NCCL's own sockets with its TLS");
  }
}

void bypass_check(const struct bypass_facts *facts) {
  bool is_gin = has_gin(facts->release), is_rma = has_rma(facts->release);
  const char *way = facts->has_rdma                   ? "its own RDMA"
                    : facts->release >= FIRST_SOCKETS ? "its own sockets"
                                                      : NULL;
  if (facts->release < FIRST_GIN) {
    return;
  }
  if (!way || (!is_gin && !is_rma)) {
    doctor_tell(DOCTOR_GOOD,
                way ? "GIN and RMA are switched off: all data between hosts goes through stratus"
                    : "this NCCL has GIN and RMA over RDMA only, and no device for it here: all "
                      "data between hosts goes through stratus");
    way = NULL;
  } else {
    doctor_tell(DOCTOR_HINT,
                "collectives and send/recv go through stratus; what a job sends with %s%s%s goes "
                "over %s, as NCCL asks no net plugin for it (to switch it off: %s%s%s)",
                !is_gin ? ""
                : facts->release < FIRST_SYMMETRIC_GIN
                    ? "GIN (device API)"
                    : "GIN (device API, kernels for symmetric windows)",
                is_gin && is_rma ? " or " : "", is_rma ? "RMA (ncclPutSignal)" : "", way,
                is_gin ? "NCCL_GIN_ENABLE=0" : "",
                is_gin && is_rma && facts->release >= FIRST_RMA_DISABLE ? " " : "",
                is_rma && facts->release >= FIRST_RMA_DISABLE ? "NCCL_RMA_DISABLE=1" : "");
  }
  if (way && is_rma && facts->release >= FIRST_RMA_DISABLE && is_zero_cta_wanted()) {
    doctor_tell(DOCTOR_HINT,
                "NCCL_CTA_POLICY=%s: AllGather and AlltoAll of symmetric windows are RMA between "
                "hosts, and go over %s, not through stratus",
                getenv("NCCL_CTA_POLICY"), way);
  }
  tell_of_encryption(facts, way);
}
