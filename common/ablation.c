/* SPDX-License-Identifier: Apache-2.0 */
/* See ablation.h. */
#include "common/ablation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/param.h"
#include "common/quantity.h"

/* As quantity_find_word takes them; behind the last comes an empty one, which is no word. */
static const char words[] =
#define ABLATION_WORD(name, word, instead) word "|"
    ABLATION_TABLE(ABLATION_WORD);
#undef ABLATION_WORD

uint64_t ablation_loaded;

int ablation_load(void) {
  const char *text = param_string(PARAM_ABLATE);
  char copy[sizeof words], *rest = *text ? copy : NULL;
  uint64_t mask = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word; (word = strsep(&rest, ","));) {
    int found = quantity_find_word(words, word);
    if (found < 0) {
      LOG_WARN("STRATUS_ABLATE: unknown heuristic '%s'; accepted, separated by commas: %s", word,
               words);
      return -EINVAL;
    }
    mask |= UINT64_C(1) << found;
  }
  ablation_loaded = mask;
  if (mask) {
    LOG_WARN("heuristics are switched off for a measurement (STRATUS_ABLATE=%s): not for use",
             text);
  }
  return 0;
}
