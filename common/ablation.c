/* SPDX-License-Identifier: Apache-2.0 */
/* See ablation.h. */
#include "common/ablation.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"

static const char *const words[ABLATION_COUNT] = {
#define ABLATION_WORD(name, word, instead) word,
  ABLATION_TABLE(ABLATION_WORD)
#undef ABLATION_WORD
};

static const char *const accepted =
#define ABLATION_ACCEPTED(name, word, instead) " " word
    ABLATION_TABLE(ABLATION_ACCEPTED);
#undef ABLATION_ACCEPTED

uint64_t ablation_loaded;

static int find_word(const char *text, size_t length) {
  for (int i = 0; i < ABLATION_COUNT; i++) {
    if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) {
      return i;
    }
  }
  return -1;
}

int ablation_load(void) {
  const char *text = param_string(PARAM_ABLATE);
  uint64_t mask = 0;
  while (*text) {
    size_t length = strcspn(text, ",");
    int found = find_word(text, length);
    if (found < 0) {
      LOG_WARN("STRATUS_ABLATE: unknown heuristic '%.*s'; accepted, separated by commas:%s",
               (int)length, text, accepted);
      return -EINVAL;
    }
    mask |= UINT64_C(1) << found;
    text += length + (text[length] == ',');
  }
  ablation_loaded = mask;
  if (mask) {
    LOG_WARN("heuristics are switched off for a measurement (STRATUS_ABLATE=%s): not for use",
             param_string(PARAM_ABLATE));
  }
  return 0;
}
