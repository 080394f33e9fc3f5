/* SPDX-License-Identifier: Apache-2.0 */
/* credit: the sender's permission and the receiver's economy with WINDOW frames. */
#include "net_plugin/link/credit.h"

bool credit_must_request(const struct credit_taken *credit, uint64_t message, bool is_eager) {
  return message >= credit->requested && !(is_eager && credit->eager_slots > 0);
}

void credit_init(struct credit_given *credit, unsigned eager_slots) {
  *credit = (struct credit_given){ .eager_slots = eager_slots };
  credit_end(credit);
}

void credit_granted(struct credit_given *credit, uint64_t granted, uint64_t landed) {
  credit->granted = granted;
  if (granted == credit->advertised) {
    return;
  }
  uint64_t unadvertised = granted - credit->advertised;
  if (credit->advertised < credit->wanted) {
    credit->is_due = true;
  } else if (credit->is_bulk) {
    /* advertised - landed is what the sender can still use; eager messages may land beyond it. */
    uint64_t left = credit->advertised > landed ? credit->advertised - landed : 0;
    credit->is_due |= left <= unadvertised;
  } else {
    credit->is_due |= 2 * unadvertised >= credit->eager_slots;
  }
}

void credit_requested(struct credit_given *credit, uint64_t message, uint64_t granted) {
  if (message >= credit->wanted) {
    credit->wanted = message + 1;
  }
  credit->is_due |= credit->advertised < credit->wanted && granted > credit->advertised;
}

void credit_frame_arrived(struct credit_given *credit, uint32_t bytes, bool wants_ack,
                          bool has_landed, uint64_t latest_ns) {
  credit->frames++;
  credit->bytes += bytes;
  if ((has_landed && wants_ack) || (!wants_ack && credit->frames >= CREDIT_FRAMES) ||
      credit->bytes >= CREDIT_BYTES) {
    credit->is_due = true;
  } else if (!credit->is_due && latest_ns < credit->deadline_ns) {
    credit->deadline_ns = latest_ns;
  }
}

void credit_time_passed(struct credit_given *credit, uint64_t now_ns) {
  if (now_ns >= credit->deadline_ns) {
    credit->is_due = true; /* until some lane can write it; there is nothing more to wait for */
    credit->deadline_ns = LINK_NO_DEADLINE;
  }
  if (now_ns >= credit->opening_ns) {
    credit->is_due |= credit->granted > credit->advertised;
    credit->opening_ns = LINK_NO_DEADLINE;
  }
}

void credit_advertised(struct credit_given *credit, uint64_t granted) {
  credit->advertised = granted;
  credit->frames = 0;
  credit->bytes = 0;
  credit->is_due = false;
  credit->deadline_ns = LINK_NO_DEADLINE;
}
