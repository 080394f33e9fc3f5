/* SPDX-License-Identifier: Apache-2.0 */
/* See profile_use.h. */
#include "net_plugin/plugin/profile_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/choices.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/settings.h"

/* A library elsewhere by NCCL's default name is not searched: README.md names it. */
static bool is_tuner_used(void) {
  const char *name = getenv("NCCL_TUNER_PLUGIN");
  return name && strstr(name, "stratus") && param_bool(PARAM_TUNER);
}

static bool is_calibrating(void) {
  return is_tuner_used() && param_is_set(PARAM_CALIBRATE);
}

static uint64_t hash_text(const char *text) {
  uint8_t digest[HASH_SHA256_BYTES];
  uint64_t hash;
  hash_sha256(text, strlen(text), digest);
  memcpy(&hash, digest, sizeof hash);
  return hash;
}

static void add_choices(struct decision *decision) {
  char choices[CHOICES_TEXT_MAX];
  choices_list(choices);
  if (*choices) {
    decision->hash ^= hash_text(choices);
  }
  int length = snprintf(decision->choices, sizeof decision->choices, "%s", choices);
  if (length >= (int)sizeof decision->choices) {
    strcpy(decision->choices + sizeof decision->choices - 4, "...");
  }
}

struct decision profile_use_decision(const struct profile *profile, int nccl_version) {
  struct profile decisive = { 0 };
  if (profile && profile_match_is_nccl_in_range(&profile->meta, nccl_version)) {
    decisive = *profile;
    if (!is_tuner_used() || is_calibrating()) {
      decisive.table_count = 0;
    }
  }
  struct decision decision = {
    .version = PROFILE_DECISION_VERSION,
    .hash = profile_decision_hash(&decisive),
    .profile = profile ? profile_hash(profile) : 0,
  };
  if (is_calibrating()) { /* its choices come from its plan, so ranks need the same one */
    decision.hash ^= hash_text(param_string(PARAM_CALIBRATE));
  }
  if (decision.hash != 0) { /* a profile chooses among what they leave */
    add_choices(&decision);
  }
  return decision;
}

void profile_use(const struct profile *profile, int nccl_version) {
  settings_use_profile(profile);
  struct decision ours = profile_use_decision(profile, nccl_version);
  decision_use(&ours);
  if (profile && !profile_match_is_nccl_in_range(&profile->meta, nccl_version)) {
    LOG_INFO("profile %s was made for other releases of NCCL: only its [net] part is used",
             profile->meta.id);
  }
}
