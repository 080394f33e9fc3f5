/* SPDX-License-Identifier: Apache-2.0 */
/* Advisory numbers: stored word by word without a lock, since a progress thread must not wait. */
#include "net_plugin/plugin/attributes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = sizeof(struct attributes) / sizeof(uint32_t) };
_Static_assert(sizeof(struct attributes) == 11 * sizeof(uint32_t), "all members are 32-bit words");

void attributes_store(struct attributes *to, const struct attributes *from) {
  uint32_t words[WORDS];
  memcpy(words, from, sizeof(words));
  for (size_t i = 0; i < WORDS; i++) {
    __atomic_store_n((uint32_t *)(void *)to + i, words[i], __ATOMIC_RELAXED);
  }
}

const char *attributes_format(const struct attributes *attributes, char text[ATTRIBUTES_TEXT_MAX]) {
  const struct attributes_direction *send = &attributes->send;
  const struct attributes_direction *receive = &attributes->receive;
  snprintf(text, ATTRIBUTES_TEXT_MAX,
           "send: %d to %d peers, %d to %d connections each; receive: %d to %d peers, %d to %d "
           "connections each; operations 0x%x, algorithms 0x%x, protocols 0x%x",
           send->min_peers, send->max_peers, send->min_flows, send->max_flows, receive->min_peers,
           receive->max_peers, receive->min_flows, receive->max_flows, attributes->operations,
           attributes->algorithms, attributes->protocols);
  return text;
}
