/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL reads its numbers with strtoll and takes what that makes of them, so that a typing error is
 * a zero. Here it is a warning. */
#include "net_plugin/lane/rdma/rdma_settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"
#include "net_plugin/lane/rdma/limits.h"
#include "net_plugin/lane/rdma/rdma_facts.h"

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

/* ---- NCCL_IB_ADDR_RANGE ---- */

/* Without a family the range's own is meant. */
static void read_range(struct rdma_settings *out) {
  const char *text = variable("NCCL_IB_ADDR_RANGE");
  if (!text) {
    return;
  }
  char address[INET6_ADDRSTRLEN];
  const char *slash = strchr(text, '/');
  size_t length = slash ? (size_t)(slash - text) : sizeof(address);
  struct in_addr ipv4;
  struct in6_addr ipv6 = { 0 };
  long long bits = 0;
  snprintf(address, sizeof(address), "%.*s", (int)(length < sizeof(address) ? length : 0), text);
  bool is_ipv4 = out->family != AF_INET6 && inet_pton(AF_INET, address, &ipv4) == 1;
  bool is_ipv6 = !is_ipv4 && out->family != AF_INET && inet_pton(AF_INET6, address, &ipv6) == 1;
  if ((!is_ipv4 && !is_ipv6) || !parse_number(slash + 1, 0, is_ipv4 ? 32 : 128, &bits)) {
    LOG_WARN(
        "NCCL_IB_ADDR_RANGE=%s is ignored: accepted is an address of the family%s and a number "
        "of bits, as in 10.1.0.0/16",
        text, out->family == AF_UNSPEC ? "" : " in NCCL_IB_ADDR_FAMILY");
    return;
  }
  if (is_ipv4) {
    ipv6.s6_addr[10] = ipv6.s6_addr[11] = 0xff;
    memcpy(ipv6.s6_addr + 12, &ipv4, sizeof(ipv4));
  }
  out->family = is_ipv4 ? AF_INET : AF_INET6;
  out->range = ipv6;
  out->prefix_bits = (unsigned)bits + (is_ipv4 ? 96 : 0);
}

/* ---- all ---- */

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
  int cm = param_enum(PARAM_RDMA_CM);
  out->cm = cm == PARAM_RDMA_CM_ON    ? RDMA_CM_MUST
            : cm == PARAM_RDMA_CM_OFF ? RDMA_CM_NEVER
                                      : RDMA_CM_MAY;
  name_list_parse(&out->hcas, "NCCL_IB_HCA", variable("NCCL_IB_HCA"), true);
  out->gid_index = (int)read_number("NCCL_IB_GID_INDEX", -1, 65535, -1);
  out->traffic_class = (int)read_number("NCCL_IB_TC", -1, 255, -1);
  out->service_level = (int)read_number("NCCL_IB_SL", -1, 15, -1);
  out->timeout = (uint8_t)read_number("NCCL_IB_TIMEOUT", 0, 31, RDMA_TIMEOUT);
  out->retry_count = (uint8_t)read_number("NCCL_IB_RETRY_CNT", 0, 7, 7);
  out->pkey_index = (uint16_t)read_number("NCCL_IB_PKEY", 0, 65535, 0);
  out->roce_version = (uint8_t)read_number("NCCL_IB_ROCE_VERSION_NUM", 1, 2, 2);
  out->family = name_list_family("NCCL_IB_ADDR_FAMILY", variable("NCCL_IB_ADDR_FAMILY"));
  read_range(out);
}
