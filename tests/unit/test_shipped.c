/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles that are installed: each says where its values are from, and none claims what
 * nobody measured. Which machine gets which: test_machine.c. */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

#define DIRECTORY "tuner_plugin/profiles"

/* Calls with each shipped profile; the example of the format is none. */
static void for_each(void (*check)(const char *name, const char *path)) {
  struct dirent **entries;
  int count = scandir(DIRECTORY, &entries, NULL, alphasort), checked = 0;
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".profile") == 0 && strcmp(name, "example.profile") != 0) {
      char path[TREE_PATH_MAX];
      snprintf(path, sizeof path, DIRECTORY "/%s", name);
      check(name, path);
      checked++;
    }
    free(entries[i]);
  }
  free(entries);
  assert_true(checked > 0);
}

static void check_content(const char *name, const char *path) {
  struct profile profile;
  struct profile_error error;
  if (profile_read(path, &profile, &error) != 0) {
    fail_msg("%s", error.text);
  }
  assert_int_equal(strncmp(name, profile.meta.id, strlen(profile.meta.id)), 0);
  assert_string_equal(name + strlen(profile.meta.id), ".profile");
  assert_true(profile.meta.created[0] && profile.meta.source[0]);
  /* Nothing that could make a collective slower than NCCL's own choice, or ranks differ. */
  assert_int_equal(profile.table_count, 0);
  assert_true(profile_decision_hash(&profile) == 0);
  /* What says nothing about a link is of no use to anybody. */
  assert_true(profile.net.flows || profile.net.speed_mbps);
  profile_free(&profile);
}

UNIT_TEST(none_claims_what_nobody_measured) {
  for_each(check_content);
}

/* "2026-08" */
static bool has_date(const char *text) {
  for (; *text; text++) {
    if (strncmp(text, "20", 2) == 0 && isdigit((unsigned char)text[2]) &&
        isdigit((unsigned char)text[3]) && text[4] == '-' && isdigit((unsigned char)text[5])) {
      return true;
    }
  }
  return false;
}

/* As many as fill the NIC, by the cap that the cloud's document says. */
static void check_flows(const char *name, unsigned flows, const char *note, unsigned mbps) {
  unsigned cap_gbps = 1;
  if (sscanf(note, "%u Gb/s per flow;", &cap_gbps) != 1 || !strstr(note, " (") ||
      !strstr(note, "not measured")) {
    fail_msg("%s: flows' note has to be \"CAP Gb/s per flow; ... (DOCUMENT, YYYY-MM); not "
             "measured\": %s",
             name, note);
  }
  if (flows != (mbps / 1000 + cap_gbps - 1) / cap_gbps) {
    fail_msg("%s: a NIC of %u Mb/s is not filled by %u flows of %u Gb/s", name, mbps, flows,
             cap_gbps);
  }
}

static void check_notes(const char *name, const char *path) {
  static const char *const parts[] = { "match", "net" };
  json_t *profile = json_load_file(path, 0, NULL), *value;
  const json_t *notes = json_object_get(profile, "notes"), *net = json_object_get(profile, "net");
  const char *key;
  int values = 0;
  for (int i = 0; i < 2; i++) {
    json_object_foreach(json_object_get(profile, parts[i]), key, value) {
      const char *note = json_string_value(json_object_get(notes, key));
      values++;
      if (!note || !has_date(note)) {
        fail_msg("%s has %s without source and date in its notes", name, key);
      }
      if (strcmp(key, "flows") == 0) {
        check_flows(name, (unsigned)json_integer_value(value), note,
                    (unsigned)json_integer_value(json_object_get(net, "speed_mbps")));
      }
    }
  }
  assert_true(values >= 2);
  json_decref(profile);
}

UNIT_TEST(each_value_has_source_and_date) {
  for_each(check_notes);
}
