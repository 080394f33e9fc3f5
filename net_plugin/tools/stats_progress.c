/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_print.h. All ranks of a communicator enter its collectives in the same order, so the
 * one with fewer entered is behind. */
#include "net_plugin/tools/stats_print.h"

#include <stdbool.h>
#include <stdio.h>

#include "net_plugin/tools/limits.h"
#include "net_plugin/tools/document.h"

/* Both are borrowed from the documents. */
struct member {
  const json_t *process, *communicator;
};

static json_int_t whole(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

/* The next member of any process, from position *at on; false: there are no more. */
static bool next_member(const json_t *processes, size_t at[2], struct member *member) {
  for (; at[0] < json_array_size(processes); at[0]++, at[1] = 0) {
    member->process = json_array_get(processes, at[0]);
    const json_t *list = json_object_get(member->process, "communicators");
    if (at[1] < json_array_size(list)) {
      member->communicator = json_array_get(list, at[1]++);
      return true;
    }
  }
  return false;
}

static bool is_same(const json_t *a, const json_t *b) {
  return json_equal(json_object_get(a, "communicator"), json_object_get(b, "communicator"));
}

/* "AllReduce 17": the first that this member has not entered, as far as the foremost one shows it;
 * where functions alternate, the last one that the foremost has entered. */
static void print_missing(const json_t *behind, const json_t *foremost) {
  char function[DOCUMENT_TEXT_MAX];
  json_int_t steps = whole(foremost, "entered") - whole(behind, "entered");
  json_int_t sequence = whole(foremost, "sequence");
  bool is_one_function =
      whole(behind, "entered") == 0 ||
      json_equal(json_object_get(behind, "function"), json_object_get(foremost, "function"));
  if (is_one_function && sequence + 1 >= steps &&
      (whole(behind, "entered") == 0 || sequence - whole(behind, "sequence") == steps)) {
    sequence -= steps - 1;
  }
  printf("%s %" JSON_INTEGER_FORMAT, document_text(foremost, "function", function), sequence);
}

static void print_behind(const struct member *behind, const json_t *foremost) {
  char host[DOCUMENT_TEXT_MAX], function[DOCUMENT_TEXT_MAX];
  printf("  rank %" JSON_INTEGER_FORMAT " (process %" JSON_INTEGER_FORMAT
         " on %s) has not entered ",
         whole(behind->communicator, "rank"), whole(behind->process, "pid"),
         document_text(behind->process, "host", host));
  print_missing(behind->communicator, foremost);
  printf(", where the first rank has been for %.1f s",
         json_number_value(json_object_get(foremost, "seconds_ago")));
  if (whole(behind->communicator, "entered")) {
    printf("; it entered %s %" JSON_INTEGER_FORMAT " %.1f s ago",
           document_text(behind->communicator, "function", function),
           whole(behind->communicator, "sequence"),
           json_number_value(json_object_get(behind->communicator, "seconds_ago")));
  }
  printf("\n");
}

static void print_communicator(const json_t *processes, const json_t *first) {
  char name[DOCUMENT_TEXT_MAX];
  const json_t *foremost = first;
  json_int_t known = 0, ranks = whole(first, "ranks");
  struct member member;
  for (size_t at[2] = { 0, 0 }; next_member(processes, at, &member);) {
    if (is_same(member.communicator, first)) {
      known++;
      foremost = whole(member.communicator, "entered") > whole(foremost, "entered")
                     ? member.communicator
                     : foremost;
    }
  }
  if (json_number_value(json_object_get(foremost, "seconds_ago")) < STATS_LATE_S) {
    return;
  }
  bool has_title = false;
  for (size_t at[2] = { 0, 0 }; next_member(processes, at, &member);) {
    if (is_same(member.communicator, first) &&
        whole(member.communicator, "entered") < whole(foremost, "entered")) {
      if (!has_title) {
        printf("communicator %s:\n", document_text(first, "communicator", name));
        has_title = true;
      }
      print_behind(&member, foremost);
    }
  }
  if (has_title && known < ranks) {
    printf("  %" JSON_INTEGER_FORMAT " of its %" JSON_INTEGER_FORMAT
           " ranks are not among these processes\n",
           ranks - known, ranks);
  }
}

void stats_progress_print(const json_t *processes) {
  struct member member, earlier;
  for (size_t at[2] = { 0, 0 }; next_member(processes, at, &member);) {
    bool is_told = false;
    for (size_t before[2] = { 0, 0 };
         next_member(processes, before, &earlier) && earlier.communicator != member.communicator;) {
      is_told |= is_same(earlier.communicator, member.communicator);
    }
    if (!is_told) {
      print_communicator(processes, member.communicator);
    }
  }
}
