/* SPDX-License-Identifier: Apache-2.0 */
/* The text: a tree of paths, in which what stands alone at a place moves up, and what is beside
 * each other is sorted by what it is. */
#include "common/topology.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/hex.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/param.h"

/* ---- parts of a text ---- */

struct parts {
  char **texts;
  size_t count;
};

static void free_parts(struct parts *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    free(parts->texts[i]);
  }
  free(parts->texts);
}

/* Takes over `text`; false for NULL, or if memory is out. */
static bool add_part(struct parts *parts, char *text) {
  char **texts = text ? reallocarray(parts->texts, parts->count + 1, sizeof *texts) : NULL;
  if (!texts) {
    free(text);
    return false;
  }
  parts->texts = texts;
  texts[parts->count++] = text;
  return true;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "before" "2 x a, b" "after" */
static char *join(struct parts *parts, const char *before, const char *after) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  if (!to) {
    return NULL;
  }
  qsort(parts->texts, parts->count, sizeof *parts->texts, compare_texts);
  fputs(before, to);
  for (size_t i = 0, next; i < parts->count; i = next) {
    for (next = i + 1; next < parts->count && !strcmp(parts->texts[i], parts->texts[next]);) {
      next++;
    }
    fputs(i > 0 ? ", " : "", to);
    if (next - i > 1) {
      fprintf(to, "%zu x ", next - i);
    }
    fputs(parts->texts[i], to);
  }
  fputs(after, to);
  if (fclose(to) != 0) {
    free(text);
    return NULL;
  }
  return text;
}

/* ---- the tree ---- */

/* How much of the paths, whole parts of them, the first and the last and so all have in common. */
static size_t common_length(const struct topology_device *devices, size_t count) {
  const char *first = devices[0].path, *last = devices[count - 1].path;
  size_t length = 0;
  for (size_t i = 0;; i++) {
    bool is_part = (first[i] == '/' || !first[i]) && (last[i] == '/' || !last[i]);
    length = is_part ? i : length;
    if (!first[i] || first[i] != last[i]) {
      return length;
    }
  }
}

/* What the last part of that much of a path is. */
static const char *bracket_of(const char *path, size_t length) {
  size_t start = length;
  while (start > 0 && path[start - 1] != '/') {
    start--;
  }
  if (length - start == 7 && strncmp(path + start, "devices", 7) == 0) {
    return "";
  }
  if (strncmp(path + start, "pci", 3) == 0) {
    return "root(";
  }
  return isxdigit((unsigned char)path[start]) && memchr(path + start, '.', length - start)
             ? "switch("
             : "bus(";
}

/* Devices in the order of their paths. */
static char *format_tree(const struct topology_device *devices, size_t count) {
  if (count == 1) {
    return strdup(devices->text);
  }
  struct parts parts = { 0 };
  size_t length = common_length(devices, count);
  const char *bracket = bracket_of(devices->path, length);
  bool is_good = true;
  for (size_t i = 0, next; is_good && i < count; i = next) {
    const char *name = devices[i].path + length;
    size_t name_length = name[0] ? 1 + strcspn(name + 1, "/") : 0;
    for (next = i + 1; next < count && name_length > 0; next++) {
      const char *other = devices[next].path + length;
      if (strncmp(name, other, name_length) != 0 ||
          (other[name_length] && other[name_length] != '/')) {
        break;
      }
    }
    /* Two of one path cannot be told apart by it. */
    bool is_one = next - i == 1 || strcmp(devices[i].path, devices[next - 1].path) == 0;
    for (size_t one = i; is_one && is_good && one < next; one++) {
      is_good = add_part(&parts, strdup(devices[one].text));
    }
    is_good = is_good && (is_one || add_part(&parts, format_tree(devices + i, next - i)));
  }
  char *text = is_good ? join(&parts, bracket, bracket[0] ? ")" : "") : NULL;
  free_parts(&parts);
  return text;
}

static char *format_node(const struct topology_device *devices, size_t count) {
  struct parts tree = { 0 };
  char *text = NULL;
  if (add_part(&tree, format_tree(devices, count))) {
    text = join(&tree, devices->numa < 0 ? "unplaced[" : "node[", "]");
  }
  free_parts(&tree);
  return text;
}

static int compare_devices(const void *a, const void *b) {
  const struct topology_device *x = a, *y = b;
  int order = (x->numa > y->numa) - (x->numa < y->numa);
  order = order != 0 ? order : strcmp(x->path, y->path);
  return order != 0 ? order : strcmp(x->text, y->text);
}

char *topology_format(struct topology_device *devices, size_t count, int numa_count) {
  struct parts nodes = { 0 };
  bool is_good = true;
  /* With one node, whether firmware tells that a device is near it says nothing. */
  for (size_t i = 0; i < count && numa_count <= 1; i++) {
    devices[i].numa = 0;
  }
  qsort(devices, count, sizeof *devices, compare_devices);
  for (size_t i = 0, next; is_good && i < count; i = next) {
    for (next = i + 1; next < count && devices[i].numa == devices[next].numa;) {
      next++;
    }
    is_good = add_part(&nodes, format_node(devices + i, next - i));
  }
  char head[32];
  snprintf(head, sizeof head, "numa %d: ", numa_count > 1 ? numa_count : 1);
  char *text = is_good ? join(&nodes, head, "") : NULL;
  free_parts(&nodes);
  return text;
}

/* ---- the fingerprint ---- */

void topology_fingerprint(const char *text, char id[TOPOLOGY_ID_MAX]) {
  uint8_t digest[HASH_SHA256_BYTES];
  id[0] = '\0';
  if (text) {
    hash_sha256(text, strlen(text), digest);
    hex_write(digest, TOPOLOGY_ID_DIGITS / 2, id);
  }
}

bool topology_is_id(const char *text, size_t length) {
  size_t digits = 0;
  while (digits < length && strchr("0123456789abcdef", text[digits]) && text[digits]) {
    digits++;
  }
  return length == TOPOLOGY_ID_DIGITS && digits == length;
}

void topology_identify(char id[TOPOLOGY_ID_MAX]) {
  const char *word = param_string(PARAM_TOPOLOGY);
  if (topology_is_id(word, strlen(word))) {
    snprintf(id, TOPOLOGY_ID_MAX, "%s", word);
    return;
  }
  if (word[0]) {
    LOG_WARN_EVERY(SETTING_WARN_INTERVAL_NS,
                   "STRATUS_TOPOLOGY=%s is ignored: it takes %d digits 0-9 and a-f, as stratus-net "
                   "doctor shows them",
                   word, TOPOLOGY_ID_DIGITS);
  }
  char *text = topology_read(param_string(PARAM_SYSFS_ROOT));
  topology_fingerprint(text, id);
  free(text);
}
