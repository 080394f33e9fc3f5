/* SPDX-License-Identifier: Apache-2.0 */
/* See decision.h. */
#include "net_plugin/setup/decision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/choices.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "net_plugin/setup/limits.h"
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

struct decision decision_of(const struct profile *profile, int nccl_version) {
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

void decision_use_profile(const struct profile *profile, int nccl_version) {
  struct decision decision = decision_of(profile, nccl_version);
  settings_use_profile(profile);
  settings_use_decision(&decision);
  if (profile && !profile_match_is_nccl_in_range(&profile->meta, nccl_version)) {
    LOG_INFO("profile %s was made for other releases of NCCL: only its net part is used",
             profile->meta.id);
  }
}

bool decision_is_same(const struct decision *a, const struct decision *b) {
  return a->hash == b->hash && a->version == b->version;
}

/* "profile hash 0123456789abcdef" or "no profile"; the rest only where it is what differs. */
static const char *describe(const struct decision *decision, bool has_same_profile, char text[96]) {
  char profile[40] = "no profile";
  if (decision->profile) {
    snprintf(profile, sizeof profile, "profile hash %016" PRIx64, decision->profile);
  }
  if (has_same_profile) {
    snprintf(text, 96, "%s, decisions %016" PRIx64 " of version %u", profile, decision->hash,
             decision->version);
  } else {
    snprintf(text, 96, "%s", profile);
  }
  return text;
}

/* Room for each entry and what separates it: a blank becomes a comma and a blank. */
enum { DIFFERENCES_MAX = 2 * CHOICES_TEXT_BYTES };

static void tell_choices(const struct conn_params *ours, const struct conn_params *theirs,
                         const char *their_address) {
  const char *our_choices = ours->decision.choices, *their_choices = theirs->decision.choices;
  char here[DIFFERENCES_MAX], there[DIFFERENCES_MAX];
  LOG_WARN_EVERY(SETUP_WARN_INTERVAL_NS,
                 "ranks would choose algorithms differently and hang, as a profile decides beside "
                 "the user's variables, so there is no connection: %s on this host, %s; %s on %s "
                 "(%s). Set them alike on every host, or on none",
                 choices_difference(our_choices, their_choices, here, sizeof here), ours->host,
                 choices_difference(their_choices, our_choices, there, sizeof there), theirs->host,
                 their_address);
}

static void tell_profiles(const struct conn_params *ours, const struct conn_params *theirs,
                          const char *their_address) {
  char here[96], there[96];
  bool has_same_profile = ours->decision.profile == theirs->decision.profile;
  LOG_WARN_EVERY(
      SETUP_WARN_INTERVAL_NS,
      "ranks would choose algorithms differently and hang, so there is no connection: %s on "
      "this host, %s; %s on %s (%s). %s; stratus show tells a host's profile",
      describe(&ours->decision, has_same_profile, here), ours->host,
      describe(&theirs->decision, has_same_profile, there), theirs->host, their_address,
      has_same_profile ? "Set STRATUS_TUNER, STRATUS_CALIBRATE and "
                         "NCCL_TUNER_PLUGIN alike on every host, and install the same release"
                       : "Use the same profile on every host; where machines differ, name it with "
                         "STRATUS_PROFILE");
}

void decision_tell(const struct conn_params *ours, const struct conn_params *theirs,
                   const char *their_address) {
  const struct decision *here = &ours->decision, *there = &theirs->decision;
  bool is_alike = here->profile == there->profile && here->version == there->version;
  if (is_alike && strcmp(here->choices, there->choices) != 0) {
    tell_choices(ours, theirs, their_address);
  } else {
    tell_profiles(ours, theirs, their_address);
  }
}
