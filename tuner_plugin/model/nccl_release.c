/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of 2.19, then the changes of each release, in order. */
#include "tuner_plugin/model/nccl_release.h"

#include <string.h>

/* Rows: tree, ring, collnetdirect, collnetchain, nvls, nvlstree, pat; columns: LL, LL128, Simple.
 */
static const struct nccl_release release_2_19 = {
  .base_us = { { 6.8, 14.0, 0 }, { 6.6, 14.0, 8.4 } },
  .hop_us = {
    [NCCL_NVLINK] = { { 0.6, 1.25, 28 }, { 0.6, 1.9, 3.4 }, { 0, 0, 3.7 }, { 0, 0, 2.8 },
                      { 0, 0, 23 }, { 0, 0, 23 } },
    [NCCL_PCI] = { { 1.0, 1.9, 28 }, { 1.0, 2.5, 5.7 }, { 0, 0, 3.7 }, { 0, 0, 2.8 } },
    [NCCL_NET] = { { 5.0, 8.5, 28 }, { 2.7, 4.0, 14.0 }, { 0, 0, 31 }, { 0, 0, 30 },
                   { 0, 0, 18 }, { 0, 0, 14 } },
  },
  .ll_gbs = { { 39.0, 39.0, 20.4 }, { 87.7, 22.5, 19.0 }, { 87.7, 22.5, 19.0 } },
  .ring_ll128_channel_gbs = { { 20, 20, 20 }, { 20, 20, 20 }, { 36.7, 36.7, 36.7 } },
  .tree_ll128_channel_gbs = { { 20, 20, 20 }, { 20, 20, 20 }, { 36.7, 36.7, 29.0 } },
  .tree_channel_gbs = { { 26.5, 18.5, 10.0 }, { 24.0, 23.6, 17.8 }, { 38.7, 41.4, 36.0 } },
  .nvls_tree_channel_gbs = { { 26.5, 18.5, 10.0 }, { 24.0, 23.6, 17.8 }, { 0, 57.7, 45.5 },
                             { 0, 96.0, 43.1 } },
  .nvls_efficiency = { 0, 0, 0.85, 0.74 },
  .has_ring_ll128_penalty = true,
  .has_wrapped_ring_steps = true,
  .has_tiny_tree_factor = true,
  .is_ll128_for_listed_only = true,
};

const float nccl_tree_factor[PROFILE_PROTOCOL_COUNT][NCCL_TREE_FACTOR_COUNT] = {
  { 1.0f, 1.0f, 1.0f, 1.0f, .9f, .8f, .7f, .7f,  .7f,  .7f,  .6f, .5f,
    .4f,  .4f,  .5f,  .6f,  .7f, .8f, .9f, 1.0f, 1.0f, 1.0f, 1.0f },
  { 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, .9f, .8f, .8f, .8f, .7f,  .6f, .6f,
    .6f,  .6f,  .6f,  .6f,  .8f,  .9f, .9f, .9f, .9f, 1.0f, 1.0f },
  { .9f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .7f, .6f, .6f, .5f,
    .5f, .5f, .5f, .6f, .7f, .8f, .7f, .7f, .8f, .9f, .9f },
};

static void set_row(double (*limits)[NCCL_SCALE_COUNT], enum nccl_generation generation, double one,
                    double two, double more) {
  limits[generation][0] = one;
  limits[generation][1] = two;
  limits[generation][2] = more;
}

/* Blackwell's first rows were Hopper's, doubled. */
static void double_row(double (*limits)[NCCL_SCALE_COUNT]) {
  for (int scale = 0; scale < NCCL_SCALE_COUNT; scale++) {
    limits[NCCL_BLACKWELL][scale] = 2 * limits[NCCL_HOPPER][scale];
  }
}

static void change_to_2_23(struct nccl_release *to) {
  to->base_us[PROFILE_TREE][PROFILE_SIMPLE] = 8.4;
  to->hop_us[NCCL_NVLINK][PROFILE_TREE][PROFILE_SIMPLE] = 4.0;
  to->hop_us[NCCL_PCI][PROFILE_TREE][PROFILE_SIMPLE] = 4.0;
  to->hop_us[NCCL_NET][PROFILE_TREE][PROFILE_SIMPLE] = 14.0;
  for (int protocol = 0; protocol < PROFILE_PROTOCOL_COUNT; protocol++) {
    to->base_us[PROFILE_PAT][protocol] = 8.0;
  }
  to->hop_us[NCCL_NET][PROFILE_PAT][PROFILE_SIMPLE] = 14.0;
  to->pat_factor = 0.85;
  to->has_ring_ll128_penalty = false;
  to->has_wrapped_ring_steps = false;
  to->has_exposed_latency = true;
}

static void change_to_2_28(struct nccl_release *to) {
  set_row(to->tree_ll128_channel_gbs, NCCL_BLACKWELL, 55.6, 31.67, 20.0);
  set_row(to->tree_channel_gbs, NCCL_BLACKWELL, 70.0, 42.8, 24.0);
  to->is_nvls_in_bus_units = true;
}

void nccl_release_get(int release, struct nccl_release *out) {
  *out = release_2_19;
  if (release >= 22100) {
    out->hop_us[NCCL_NVLINK][PROFILE_NVLS][PROFILE_SIMPLE] = 25.0;
    out->hop_us[NCCL_NVLINK][PROFILE_NVLS_TREE][PROFILE_SIMPLE] = 25.0;
    set_row(out->ll_gbs, NCCL_HOPPER, 141.0, 45.0, 35.0);
    out->is_ring_ll_half = true;
  }
  if (release >= 22200) {
    out->has_tiny_tree_factor = false;
  }
  if (release >= 22300) {
    change_to_2_23(out);
  }
  if (release >= 22400) {
    out->pat_factor = 0.75;
  }
  if (release >= 22500) {
    double_row(out->ll_gbs);
    double_row(out->ring_ll128_channel_gbs);
    double_row(out->tree_ll128_channel_gbs);
    double_row(out->tree_channel_gbs);
    out->has_blackwell = true;
  }
  if (release >= 22700) {
    out->is_ll128_for_listed_only = false;
    out->is_nvls_scaled_by_ranks = true;
  }
  if (release >= 22800) {
    change_to_2_28(out);
  }
  if (release >= 22807) {
    set_row(out->ring_ll128_channel_gbs, NCCL_BLACKWELL, 73.4, 34.6, 73.4);
  }
  if (release >= 22809) {
    out->hop_us[NCCL_NET][PROFILE_NVLS_TREE][PROFILE_SIMPLE] = 20.9;
    set_row(out->nvls_tree_channel_gbs, NCCL_BLACKWELL, 0, 96.0, 43.8);
  }
  if (release >= 22900) {
    set_row(out->ring_ll128_channel_gbs, NCCL_BLACKWELL, 34.5, 34.6, 34.5);
    out->has_blackwell_nvls_tree_factor = true;
  }
  if (release >= 22907) {
    set_row(out->ring_ll128_channel_gbs, NCCL_BLACKWELL, 40.0, 40.0, 40.0);
  }
  if (release >= 23000) {
    set_row(out->nvls_tree_channel_gbs, NCCL_BLACKWELL, 0, 96.0, 80.0);
    out->is_mixed_ll128_from_hopper = true;
  }
}
