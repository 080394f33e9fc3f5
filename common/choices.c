/* SPDX-License-Identifier: Apache-2.0 */
/* See choices.h. */
#include "common/choices.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As NCCL 2.19 to 2.30 have them: src/graph/tuning.cc, graph/connect.cc, graph/search.cc,
 * enqueue.cc and init.cc. Which transport a pair of GPUs uses is no choice of a collective, so what
 * switches transports is not here. */
const char *const choices_names[] = {
  "NCCL_ALGO",
  "NCCL_PROTO",
  "NCCL_MIN_NCHANNELS",
  "NCCL_MAX_NCHANNELS",
  "NCCL_MIN_NRINGS",
  "NCCL_MAX_NRINGS",
  "NCCL_MIN_CTAS",
  "NCCL_MAX_CTAS",
  "NCCL_NTHREADS",
  "NCCL_LL128_NTHREADS",
  "NCCL_THREAD_THRESHOLDS",
  "NCCL_CTA_POLICY",
  "NCCL_NCHANNELS_PER_NET_PEER",
  "NCCL_UNPACK_DOUBLE_NCHANNELS",
  "NCCL_MIN_P2P_NCHANNELS",
  "NCCL_MAX_P2P_NCHANNELS",
  "NCCL_BUFFSIZE",
  "NCCL_LL_BUFFSIZE",
  "NCCL_LL128_BUFFSIZE",
  "NCCL_P2P_NET_CHUNKSIZE",
  "NCCL_P2P_PCI_CHUNKSIZE",
  "NCCL_P2P_NVL_CHUNKSIZE",
  "NCCL_CHUNK_SIZE",
  "NCCL_P2P_LL_THRESHOLD",
  "NCCL_P2P_PER_CHANNEL_NET_BW",
  "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
  "NCCL_LL128_C2C",
  "NCCL_ALLGATHERV_ENABLE",
  "NCCL_NET_OVERHEAD",
  "NCCL_PAT_ENABLE",
  "NCCL_COLLNET_ENABLE",
  "NCCL_COLLNET_NODE_THRESHOLD",
  "NCCL_NVLS_ENABLE",
  "NCCL_NVLS_NCHANNELS",
  "NCCL_NVLS_CHUNKSIZE",
  "NCCL_NVLSTREE_MAX_CHUNKSIZE",
  NULL,
};

/* NCCL reads numbers as C writes them, and words in either case. A blank would end the entry. */
static size_t put_value(char *to, size_t room, const char *value) {
  char *end;
  errno = 0;
  intmax_t number = strtoimax(value, &end, 0);
  int length = errno == 0 && end != value && *end == '\0' ? snprintf(to, room, "%jd", number)
                                                          : snprintf(to, room, "%s", value);
  size_t used = length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
  for (size_t i = 0; i < used; i++) {
    to[i] = isspace((unsigned char)to[i]) ? '_' : (char)tolower((unsigned char)to[i]);
  }
  return used;
}

void choices_list(char text[CHOICES_TEXT_MAX]) {
  size_t used = 0;
  text[0] = '\0';
  for (const char *const *name = choices_names; *name; name++) {
    const char *value = getenv(*name);
    size_t room = CHOICES_TEXT_MAX - used;
    if (!value || !*value || strlen(*name) + 2 >= room) { /* to NCCL an empty one is not set */
      continue;
    }
    used += (size_t)snprintf(text + used, room, "%s%s=", used ? " " : "", *name);
    used += put_value(text + used, CHOICES_TEXT_MAX - used, value);
  }
}

static bool has_entry(const char *list, const char *entry, size_t length) {
  for (size_t own; *list; list += own + (list[own] == ' ')) {
    own = strcspn(list, " ");
    if (own == length && memcmp(list, entry, length) == 0) {
      return true;
    }
  }
  return false;
}

char *choices_difference(const char *one, const char *other, char *text, size_t room) {
  size_t used = 0;
  for (size_t length; *one; one += length + (one[length] == ' ')) {
    length = strcspn(one, " ");
    if (length > 0 && used < room && !has_entry(other, one, length)) {
      used +=
          (size_t)snprintf(text + used, room - used, "%s%.*s", used ? ", " : "", (int)length, one);
    }
  }
  if (used == 0) {
    snprintf(text, room, "none of these");
  }
  return text;
}
