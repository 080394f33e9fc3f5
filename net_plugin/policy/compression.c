/* SPDX-License-Identifier: Apache-2.0 */
/* See compression.h. */
#include "net_plugin/policy/compression.h"

#include <string.h>

void compression_init(struct compression *compression) {
  memset(compression, 0, sizeof *compression);
  compression->pause_ns = COMPRESSION_PAUSE_NS;
}

static void compression_turn(struct compression *compression, bool is_on) {
  compression->is_on = is_on;
  compression->turns++;
  compression->limited = (struct limit_window){ .bytes = 0 };
  compression->limited_windows = compression->poor = compression->rich = 0;
}

/* Processors do not keep up with coding. */
static void compression_rest(struct compression *compression) {
  compression_turn(compression, false);
  compression->due_ns = compression->ns + compression->pause_ns;
  uint64_t pause_ns = 2 * compression->pause_ns;
  compression->pause_ns = pause_ns < COMPRESSION_PAUSE_MAX_NS ? pause_ns : COMPRESSION_PAUSE_MAX_NS;
}

/* While chunks are compressed and the network is not the limit. */
static void compression_compare(struct compression *compression, const struct limit_window *window,
                                uint64_t saved_bytes) {
  uint64_t speed = limit_speed(window);
  uint64_t saved = saved_bytes < window->bytes ? saved_bytes : window->bytes;
  uint64_t coded = window->bytes > 0 ? speed * (window->bytes - saved) / window->bytes : 0;
  bool is_poor = speed * 100 < compression->before * COMPRESSION_KEEP_PERCENT;
  bool is_rich = coded * 100 > compression->before * COMPRESSION_RICH_PERCENT;
  compression->poor = is_poor ? compression->poor + 1 : 0;
  compression->rich = is_rich ? compression->rich + 1 : 0;
  if (compression->poor == COMPRESSION_POOR_WINDOWS) {
    compression_rest(compression);
  } else if (compression->rich == COMPRESSION_RICH_WINDOWS) {
    compression_turn(compression, false);
  }
}

/* Until there are enough, in which the network is the limit. */
static void compression_collect(struct compression *compression,
                                const struct limit_window *window) {
  compression->limited.loaded_ns += window->loaded_ns;
  compression->limited.bytes += window->bytes;
  compression->limited_windows++;
  if (compression->limited_windows >= COMPRESSION_LIMITED_WINDOWS &&
      compression->ns >= compression->due_ns) {
    compression->before = limit_speed(&compression->limited);
    compression_turn(compression, true);
  }
}

void compression_window(struct compression *compression, const struct limit_window *window,
                        uint64_t ns) {
  bool is_network = limit_is_network(window);
  uint64_t saved_bytes = compression->saved_bytes;
  compression->saved_bytes = 0;
  compression->ns += ns;
  if (compression->is_on && is_network) {
    compression->poor = compression->rich = 0;
  } else if (compression->is_on) {
    compression_compare(compression, window, saved_bytes);
  } else if (is_network) {
    compression_collect(compression, window);
  } else {
    compression->limited = (struct limit_window){ .bytes = 0 };
    compression->limited_windows = 0;
  }
}
