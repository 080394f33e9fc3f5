/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of NCCL_NET_PLUGIN and NCCL_TUNER_PLUGIN lead to stratus, in which release. */
#include "common/plugin_name.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

enum { RELEASES = 6 };
static const int releases[RELEASES] = { 21903, 22203, 22703, 22705, 22907, 0 };

/* A letter for each of `releases`: 1 it leads to stratus. */
static const struct {
  enum plugin_kind kind;
  const char *value, *leads;
} cases[] = {
  { PLUGIN_KIND_NET, "stratus", "111111" },
  { PLUGIN_KIND_NET, "libnccl-net-stratus.so", "011111" },
  { PLUGIN_KIND_NET, "/opt/lib/libnccl-net-stratus.so", "010111" },
  { PLUGIN_KIND_NET, "./libnccl-net-stratus.so", "010111" },
  { PLUGIN_KIND_NET, "stratus,none", "001111" },
  { PLUGIN_KIND_NET, "aws-ofi,stratus", "001111" },
  { PLUGIN_KIND_NET, ",,stratus,", "001111" },
  { PLUGIN_KIND_NET, "aws-ofi,/opt/lib/libnccl-net-stratus.so", "000111" },
  { PLUGIN_KIND_NET, "aws-ofi,none", "000000" },
  { PLUGIN_KIND_NET, ",", "000000" },
  { PLUGIN_KIND_NET, "stratus, none", "001111" },
  { PLUGIN_KIND_NET, "none, stratus", "000000" },
  { PLUGIN_KIND_NET, "stratus ", "000000" },
  { PLUGIN_KIND_NET, "stratus\r", "000000" },
  { PLUGIN_KIND_NET, "\"stratus\"", "000000" },
  { PLUGIN_KIND_NET, "STRATUS", "000000" },
  { PLUGIN_KIND_NET, "none", "000000" },
  { PLUGIN_KIND_NET, "libnccl-tuner-stratus.so", "000000" },
  { PLUGIN_KIND_NET, "/stratus/libnccl-net.so", "000000" },
  { PLUGIN_KIND_TUNER, "libnccl-tuner-stratus.so", "111111" },
  { PLUGIN_KIND_TUNER, "/opt/lib/libnccl-tuner-stratus.so", "110111" },
  { PLUGIN_KIND_TUNER, "stratus", "011111" },
  { PLUGIN_KIND_TUNER, "stratus,none", "000000" },
  { PLUGIN_KIND_TUNER, "libnccl-net-stratus.so", "000000" },
};

UNIT_TEST(each_release_reads_values_in_its_way) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int r = 0; r < RELEASES; r++) {
      if (plugin_name_is_stratus(cases[i].kind, cases[i].value, releases[r]) !=
          (cases[i].leads[r] == '1')) {
        fail_msg("%s with release %d", cases[i].value, releases[r]);
      }
    }
  }
}

UNIT_TEST(what_was_meant_is_said) {
  static const struct {
    const char *value;
    int release;
    const char *says; /* NULL: nothing */
  } told[] = {
    { "stratus", 22907, NULL },
    { "aws-ofi", 22907, NULL },
    { "none", 22907, NULL },
    { "stratus\r", 22907, "takes the carriage return at its end for a part of the name" },
    { "stratus ", 0, "takes the blank behind it for" },
    { "\"stratus\"", 0, "takes the quotes around it for" },
    { " stratus\t\r", 0, "for a part of the name" },
    { "stratus,none", 22203, "NCCL 2.22.3 takes no list there; set it to stratus" },
    { "/nonesuch/libnccl-net-stratus.so", 22005, "NCCL 2.20.5 takes no path there" },
    { "/nonesuch/libnccl-net-stratus.so", 22907, "there is no such file" },
  };
  for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
    char text[PLUGIN_NAME_TEXT_MAX];
    bool is_said = plugin_name_why_not(PLUGIN_KIND_NET, told[i].value, told[i].release, text);
    assert_int_equal(is_said, told[i].says != NULL);
    assert_true(!is_said || strstr(text, told[i].says));
  }
}

UNIT_TEST(a_path_that_is_there_is_good) {
  struct tree tree;
  char path[TREE_PATH_MAX], text[PLUGIN_NAME_TEXT_MAX];
  tree_create(&tree);
  tree_write(&tree, PLUGIN_NET, "x");
  bool is_said = plugin_name_why_not(PLUGIN_KIND_NET, tree_path(&tree, PLUGIN_NET, path), 0, text);
  tree_remove(&tree);
  assert_false(is_said);
}
