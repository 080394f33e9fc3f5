/* SPDX-License-Identifier: Apache-2.0 */
/* See tcp_options.h. */
#include "net_plugin/lane/tcp_options.h"

#include <stdio.h>

#include "common/ablation.h"
#include "common/param.h"

static struct profile_net from_profile;

void tcp_options_use_profile(const struct profile_net *net) {
  from_profile = net ? *net : (struct profile_net){ 0 };
}

/* In a profile 0 means not set; a user's 0 is a value. */
static uint32_t choose(enum param_id id, uint64_t parameter, uint32_t profile) {
  return param_is_set(id) || profile == 0 ? (uint32_t)parameter : profile;
}

void tcp_options_get(struct tcp_options *options) {
  const struct profile_net *net = &from_profile;
  options->notsent_lowat_bytes = choose(
      PARAM_NOTSENT_LOWAT_BYTES, param_size(PARAM_NOTSENT_LOWAT_BYTES), net->notsent_lowat_bytes);
  if (ablation_off(ABLATION_LOWAT)) {
    options->notsent_lowat_bytes = 0;
  }
  options->socket_buffer_bytes = choose(
      PARAM_SOCKET_BUFFER_BYTES, param_size(PARAM_SOCKET_BUFFER_BYTES), net->socket_buffer_bytes);
  options->pacing_mbps =
      choose(PARAM_PACING_MBPS, (uint64_t)param_int(PARAM_PACING_MBPS), net->pacing_mbps);
  options->busy_poll_us =
      choose(PARAM_BUSY_POLL_US, (uint64_t)param_int(PARAM_BUSY_POLL_US), net->busy_poll_us);
  options->dscp = (int)param_int(PARAM_DSCP);
  if (!param_is_set(PARAM_DSCP) && net->dscp) {
    options->dscp = (int)net->dscp;
  }
  snprintf(options->congestion, sizeof options->congestion, "%s",
           param_is_set(PARAM_TCP_CONGESTION) ? param_string(PARAM_TCP_CONGESTION)
                                              : net->tcp_congestion);
}
