/* SPDX-License-Identifier: Apache-2.0 */
/* See turns.h. */
#include "net_plugin/policy/turns.h"

static void turns_change(struct turns *turns, enum turns_state state, uint64_t next_ns) {
  turns->state = state;
  turns->late = turns->messages = 0;
  turns->next_ns = next_ns;
}

static void turns_judge(struct turns *turns, uint64_t now_ns) {
  if (turns->late * 100 <= turns->messages * TURNS_LATE_PERCENT) {
    turns->pause_ns = TURNS_NS;
    turns_change(turns, TURNS_HELP, now_ns + TURNS_NS);
  } else {
    turns_change(turns, TURNS_NONE, now_ns + turns->pause_ns);
    turns->pause_ns *= turns->pause_ns < TURNS_PAUSE_MAX_NS ? 2 : 1;
  }
}

void turns_arrived(struct turns *turns, bool is_late, uint64_t now_ns) {
  turns->messages++;
  if (turns->state == TURNS_NONE) {
    unsigned more = turns->late < TURNS_MESSAGES ? 1 : 0;
    turns->late = is_late ? turns->late + more : turns->late / 2;
    if (turns->late == TURNS_MESSAGES && now_ns >= turns->next_ns) {
      turns_change(turns, TURNS_TRIED, now_ns);
    }
  } else {
    turns->late += is_late ? 1 : 0;
    if (turns->state == TURNS_TRIED && turns->messages == TURNS_MESSAGES) {
      turns_judge(turns, now_ns);
    }
  }
}

void turns_sent(struct turns *turns, uint64_t now_ns) {
  if (turns->state == TURNS_HELP && now_ns >= turns->next_ns) {
    turns_change(turns, TURNS_NONE, now_ns);
  }
}
