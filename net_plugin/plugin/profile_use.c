/* SPDX-License-Identifier: Apache-2.0 */
/* See profile_use.h. */
#include "net_plugin/plugin/profile_use.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/choices.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/param.h"
#include "common/profile_match.h"
#include "common/profile_schema.h"
#include "net_plugin/setup/decision.h"
#include "net_plugin/setup/settings.h"

/* A library elsewhere by NCCL's default name is not searched: README.md names it. */
static bool is_tuner_used(void) {
  const char *name = getenv("NCCL_TUNER_PLUGIN");
  return name && strstr(name, "stratus") && param_bool(PARAM_TUNER);
}

static bool is_calibrating(void) {
  return is_tuner_used() && param_enum(PARAM_MODE) == PARAM_MODE_CALIBRATE;
}

static uint64_t hash_text(const char *text) {
  uint8_t digest[HASH_SHA256_BYTES];
  uint64_t hash;
  hash_sha256(text, strlen(text), digest);
  memcpy(&hash, digest, sizeof hash);
  return hash;
}

static void add_choices(const struct profile *decisive, struct decision *decision) {
  char choices[CHOICES_TEXT_MAX];
  choices_list(decisive, choices);
  if (*choices) {
    decision->hash ^= hash_text(choices);
  }
  int length = snprintf(decision->choices, sizeof decision->choices, "%s", choices);
  if (length >= (int)sizeof decision->choices) {
    strcpy(decision->choices + sizeof decision->choices - 4, "...");
  }
}

struct decision profile_use_decision(const struct profile *profile, uint32_t latency_us,
                                     int nccl_version) {
  struct profile decisive = { 0 };
  if (profile && profile_match_is_nccl_in_range(&profile->meta, nccl_version)) {
    decisive = *profile;
    if (!is_tuner_used() || is_calibrating()) {
      decisive.table_count = 0;
    }
  }
  decisive.net.latency_us = latency_us;
  struct decision decision = {
    .version = PROFILE_DECISION_VERSION,
    .hash = profile_decision_hash(&decisive),
    .profile = profile ? profile_hash(profile) : 0,
  };
  if (is_calibrating()) { /* its choices come from its plan, so ranks need the same one */
    decision.hash ^= hash_text(param_string(PARAM_CALIBRATE));
  }
  if (is_calibrating() || choices_count(&decisive)) {
    add_choices(&decisive, &decision);
  }
  return decision;
}

/* ---- NCCL's variables ---- */

/* Those of [env], by the place of their key. Each is written once, before its text is published. */
enum { NUMBER_TEXT_MAX = 16 };
static struct {
  char text[NUMBER_TEXT_MAX];
  const char *published; /* atomic */
} answers[PROFILE_KEYS_MAX];
static bool is_asked; /* atomic */

const char *profile_use_variable(const char *name) {
  const char *value = getenv(name);
  for (size_t i = 0; !value && i < profile_key_count; i++) {
    const char *answer = __atomic_load_n(&answers[i].published, __ATOMIC_ACQUIRE);
    if (answer && strcmp(profile_keys[i].name, name) == 0) {
      value = answer;
    }
  }
  return value;
}

static bool set_variable(size_t key, uint32_t value, char text[NUMBER_TEXT_MAX]) {
  snprintf(text, NUMBER_TEXT_MAX, "%" PRIu32, value);
  if (!__atomic_load_n(&is_asked, __ATOMIC_RELAXED)) {
    return setenv(profile_keys[key].name, text, 0) == 0;
  }
  if (answers[key].published) {
    return false;
  }
  memcpy(answers[key].text, text, NUMBER_TEXT_MAX);
  __atomic_store_n(&answers[key].published, answers[key].text, __ATOMIC_RELEASE);
  return true;
}

/* For each communicator, and before any plugin's init: set by setenv it would hold from the second
 * one on (envConfigOverride, src/init.cc at v2.29.7). */
static bool is_read_early(const struct profile_key *key) {
  return key->offset == offsetof(struct profile, env.collnet_enable);
}

const char *profile_use_environment(const struct profile *profile,
                                    char text[PROFILE_USE_TEXT_MAX]) {
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < profile_key_count; i++) {
    const struct profile_key *key = &profile_keys[i];
    char number[NUMBER_TEXT_MAX];
    uint32_t value;
    memcpy(&value, (const char *)profile + key->offset, sizeof value);
    if (key->section != PROFILE_SECTION_ENV || value == 0 || getenv(key->name)) {
      continue;
    }
    if (is_read_early(key) && !__atomic_load_n(&is_asked, __ATOMIC_RELAXED)) {
      LOG_WARN(
          "profile %s: %s comes too late without NCCL_ENV_PLUGIN=libnccl-net-stratus.so, so it "
          "is not set",
          profile->meta.id, key->name);
      continue;
    }
    if (set_variable(i, value, number) && used < PROFILE_USE_TEXT_MAX) {
      int length = snprintf(text + used, PROFILE_USE_TEXT_MAX - used, "%s%s=%s", used ? ", " : "",
                            key->name, number);
      used += length > 0 ? (size_t)length : 0;
    }
  }
  return text;
}

/* What is wrong with the profile is said at the net plugin's init. */
void profile_use_answer(int nccl_version) {
  __atomic_store_n(&is_asked, true, __ATOMIC_RELAXED);
  struct profile profile;
  char path[PROFILE_PATH_MAX], text[PROFILE_USE_TEXT_MAX];
  struct profile_error error;
  if (profile_match_load(&profile, path, &error) == 0) {
    struct profile early = { 0 };
    if (profile_match_is_nccl_in_range(&profile.meta, nccl_version)) {
      early.env.collnet_enable = profile.env.collnet_enable;
    }
    profile_use_environment(&early, text);
    profile_free(&profile);
  }
}

void profile_use(const struct profile *profile, uint32_t latency_us, int nccl_version) {
  static bool is_environment_set; /* NCCL would not read it a second time */
  settings_use_profile(profile);
  struct decision ours = profile_use_decision(profile, latency_us, nccl_version);
  decision_use(&ours);
  if (!profile) {
    return;
  }
  if (!profile_match_is_nccl_in_range(&profile->meta, nccl_version)) {
    LOG_INFO("profile %s was made for other releases of NCCL: only its [net] part is used",
             profile->meta.id);
    return;
  }
  char text[PROFILE_USE_TEXT_MAX];
  if (!is_environment_set && profile_use_environment(profile, text)[0]) {
    LOG_INFO("profile %s sets for NCCL: %s (%s)", profile->meta.id, text,
             __atomic_load_n(&is_asked, __ATOMIC_RELAXED) ? "as its environment plugin"
                                                          : "by setenv");
  }
  is_environment_set = true;
}
