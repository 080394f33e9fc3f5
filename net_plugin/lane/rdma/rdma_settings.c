/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL reads its numbers with strtoll and takes what that makes of them, so that a typing error is
 * a zero. Here it is a warning. */
#include "net_plugin/lane/rdma/rdma_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/lane/rdma/limits.h"

/* NULL: not set, or empty, which is the same to NCCL. */
static const char *variable(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* Decimal, or as C has it: 0x10, 010. */
static bool parse_number(const char *text, long long low, long long high, long long *value) {
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 0);
  if (errno || end == text || *end || number < low || number > high) {
    return false;
  }
  *value = number;
  return true;
}

static long long read_number(const char *name, long long low, long long high, long long otherwise) {
  const char *text = variable(name);
  long long value = otherwise;
  if (text && !parse_number(text, low, high, &value)) {
    LOG_WARN("%s=%s is ignored: accepted is %lld..%lld; %lld is used", name, text, low, high,
             otherwise);
  }
  return value;
}

void rdma_settings_read(struct rdma_settings *out) {
  *out = (struct rdma_settings){ 0 };
  int mode = param_enum(PARAM_RDMA);
  /* NCCL takes any number but 0 for true. */
  bool is_disabled = read_number("NCCL_IB_DISABLE", INT32_MIN, INT32_MAX, 0) != 0;
  if (mode == PARAM_RDMA_OFF) {
    out->off_why = "STRATUS_RDMA=off";
  } else if (is_disabled) {
    out->off_why = "NCCL_IB_DISABLE is set";
  }
  out->is_off = out->off_why != NULL;
  out->is_wanted = mode == PARAM_RDMA_ON;
  name_list_parse(&out->hcas, "NCCL_IB_HCA", variable("NCCL_IB_HCA"), true);
  out->traffic_class = (int)read_number("NCCL_IB_TC", -1, 255, -1);
  out->service_level = (int)read_number("NCCL_IB_SL", -1, 15, -1);
  out->timeout = (uint8_t)read_number("NCCL_IB_TIMEOUT", 0, 31, RDMA_TIMEOUT);
  out->retry_count = (uint8_t)read_number("NCCL_IB_RETRY_CNT", 0, 7, 7);
}
