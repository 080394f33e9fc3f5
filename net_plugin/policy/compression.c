/* SPDX-License-Identifier: Apache-2.0 */
/* See compression.h. */
#include "net_plugin/policy/compression.h"

#include <string.h>

void compression_init(struct compression *compression) {
  memset(compression, 0, sizeof *compression);
  compression->pause_ns = COMPRESSION_PAUSE_NS;
}

void compression_encoded(struct compression *compression, const struct policy_encoded *encoded) {
  if (encoded->coded_bytes > 0) {
    uint64_t ps_per_byte = encoded->took_ns * 1000 / encoded->bytes;
    compression->saved_bytes += encoded->bytes - encoded->coded_bytes;
    compression->ps_per_byte = compression->ps_per_byte == 0
                                   ? ps_per_byte
                                   : (compression->ps_per_byte * 15 + ps_per_byte) / 16;
  }
}

/* Coding would take next to nothing of the time in which the bytes are delivered. */
static bool compression_is_cheap(const struct compression *compression,
                                 const struct limit_window *window, uint64_t ns) {
  uint64_t ps_per_byte =
      compression->ps_per_byte > 0 ? compression->ps_per_byte : COMPRESSION_PS_PER_BYTE;
  uint64_t delivery_ns = window->loaded_ns < ns ? window->loaded_ns : ns;
  return window->bytes / 1000 * ps_per_byte * 100 <= delivery_ns * COMPRESSION_CHEAP_PERCENT;
}

static void compression_turn(struct compression *compression, bool is_on) {
  compression->is_on = is_on;
  compression->turns++;
  compression->limited = compression->tried = (struct limit_window){ .bytes = 0 };
  compression->limited_windows = compression->network_windows = compression->tried_windows = 0;
  compression->poor = compression->rich = 0;
}

/* Less is delivered than without: a pause, each time a longer one. */
static void compression_rest(struct compression *compression) {
  compression_turn(compression, false);
  compression->due_ns = compression->ns + compression->pause_ns;
  uint64_t pause_ns = 2 * compression->pause_ns;
  compression->pause_ns = pause_ns < COMPRESSION_PAUSE_MAX_NS ? pause_ns : COMPRESSION_PAUSE_MAX_NS;
}

/* While chunks are compressed, and that takes its time. What is slower than without is so whatever
 * the limit seems: where a receiver decodes slowly its window is full, as of a slow network. */
static void compression_compare(struct compression *compression, const struct limit_window *window,
                                uint64_t saved_bytes, bool is_network) {
  uint64_t speed = limit_speed(window);
  uint64_t saved = saved_bytes < window->bytes ? saved_bytes : window->bytes;
  uint64_t coded = window->bytes > 0 ? speed * (window->bytes - saved) / window->bytes : 0;
  bool is_poor = speed * 100 < compression->before * COMPRESSION_KEEP_PERCENT;
  bool is_rich = coded * 100 > compression->before * COMPRESSION_RICH_PERCENT;
  compression->poor = is_poor ? compression->poor + 1 : 0;
  compression->rich = is_rich && !is_network ? compression->rich + 1 : 0;
  if (compression->poor == COMPRESSION_POOR_WINDOWS) {
    compression_rest(compression);
  } else if (compression->rich == COMPRESSION_RICH_WINDOWS) {
    compression_turn(compression, false);
  }
}

/* Where coding costs next to nothing: was the number of bytes the limit? Then more is delivered
 * now. Asked once, while what the application sends is the same. */
static void compression_prove(struct compression *compression, const struct limit_window *window) {
  if (compression->tried_windows == COMPRESSION_TRIED_WINDOWS) {
    return;
  }
  limit_add(&compression->tried, window);
  compression->tried_windows++;
  if (compression->tried_windows == COMPRESSION_TRIED_WINDOWS &&
      limit_speed(&compression->tried) < compression->before) {
    compression_rest(compression);
  }
}

/* Until there are enough in which it may pay. */
static void compression_collect(struct compression *compression, const struct limit_window *window,
                                bool is_network) {
  limit_add(&compression->limited, window);
  compression->limited_windows++;
  compression->network_windows = is_network ? compression->network_windows + 1 : 0;
  bool is_enough = compression->network_windows >= COMPRESSION_LIMITED_WINDOWS ||
                   compression->limited_windows >= COMPRESSION_TRIED_WINDOWS;
  if (is_enough && compression->ns >= compression->due_ns) {
    compression->before = limit_speed(&compression->limited);
    compression_turn(compression, true);
  }
}

void compression_window(struct compression *compression, const struct limit_window *window,
                        uint64_t ns) {
  bool is_network = limit_is_network(window);
  bool is_cheap = compression_is_cheap(compression, window, ns);
  uint64_t saved_bytes = compression->saved_bytes;
  compression->saved_bytes = 0;
  compression->ns += ns;
  if (!compression->is_on && (is_network || is_cheap)) {
    compression_collect(compression, window, is_network);
  } else if (!compression->is_on) {
    compression->limited = (struct limit_window){ .bytes = 0 };
    compression->limited_windows = compression->network_windows = 0;
  } else if (!is_cheap) {
    compression_compare(compression, window, saved_bytes, is_network);
  } else if (!is_network) {
    compression_prove(compression, window);
  }
}
