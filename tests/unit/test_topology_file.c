/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL_TOPO_FILE and NCCL_GRAPH_FILE: what NCCL reads is taken, what it does not is named with its
 * line, and so are devices of other machines. */
#include "net_plugin/tools/doctor_check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/told.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static struct tree tree;
/* What stands in the file, of this machine. */
static void check_system(const char *text) {
  char path[TREE_PATH_MAX];
  tree_write_bytes(&tree, "topo.xml", text, strlen(text));
  told_clear();
  topology_file_check_system(tree_path(&tree, "topo.xml", path), tree.root);
}

static void check_graph(const char *text, int devices) {
  char path[TREE_PATH_MAX];
  tree_write_bytes(&tree, "graph.xml", text, strlen(text));
  told_clear();
  topology_file_check_graph(tree_path(&tree, "graph.xml", path), devices);
}

static void assert_told(enum doctor_finding finding, const char *part) {
  if (told_counts[finding] == 0 || !strstr(told, part)) {
    fail_msg("\"%s\" is not in:\n%s", part, told);
  }
}

#define CPU "<cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\">\n"
#define NIC(name, more)                                                                            \
  "<pci busid=\"0000:10:1b.0\" class=\"0x020000\"><nic><net name=\"" name "\"" more                \
  "/></nic></pci>\n"
#define GPU "<pci busid=\"0000:10:1C.0\" class=\"0x030200\"/>\n"
#define SYSTEM(inside) "<system version=\"1\">\n" CPU inside "</cpu>\n</system>\n"

static int set_up(void **state) {
  (void)state;
  tree_create(&tree);
  tree_write(&tree, "sys/bus/pci/devices/0000:10:1b.0/class", "0x020000\n");
  tree_write(&tree, "sys/bus/pci/devices/0000:10:1c.0/class", "0x030200\n");
  tree_write(&tree, "sys/class/net/eth0/mtu", "9001\n");
  tree_write(&tree, "sys/class/infiniband/mlx5_0/node_type", "1\n");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tree_remove(&tree);
  return 0;
}

UNIT_TEST(what_nccl_reads_is_taken) {
  static const char *const good[] = {
    SYSTEM(GPU NIC("eth0", "")),
    SYSTEM(GPU NIC("mlx5_0", " keep=\"1\" dev=\"0\"")),
    "<!-- made by hand: a=b -->\n" SYSTEM(GPU),
    "\r\n  " SYSTEM(GPU) "\r\n",
    SYSTEM("<pci busid=\"ffff:ff:01.0\" class=\"0x060400\" >" GPU "</pci>"),
    SYSTEM("<unknown a=\"1\"><cpu/><pci/></unknown>" GPU),
    "<other/>" SYSTEM(GPU),
  };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    check_system(good[i]);
    assert_told(DOCTOR_GOOD, "NCCL can read it");
    assert_int_equal(told_counts[DOCTOR_HINT] + told_counts[DOCTOR_BAD], 0);
  }
}

UNIT_TEST(what_nccl_does_not_read_is_named_with_its_line) {
  static const struct {
    const char *text, *says;
  } cases[] = {
    { "<?xml version=\"1.0\"?>\n" SYSTEM(GPU), "line 1: <?xml...>, which NCCL does not read" },
    { "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n" SYSTEM(GPU), "line 1: <?xml...>" },
    { "\n<!DOCTYPE system>\n" SYSTEM(GPU), "line 2: <!DOCTYPE...>" },
    { "\xef\xbb\xbf" SYSTEM(GPU), "line 1: \"?\" where \"<\" has to be" },
    { "<system version=\"1\">\n\t" CPU GPU "</cpu></system>",
      "line 2: \"?\" where \"<\" has to be" },
    { SYSTEM("text" GPU), "line 3: \"t\" where \"<\" has to be" },
    { "<system version=\"1\">\n<cpu\n numaid=\"0\"/>\n</system>",
      "line 3: <cpu> goes on in the next" },
    { "<system\tversion=\"1\"></system>", "line 1: \"=\" behind \"system?version\"" },
    { "<system version=1></system>", "line 1: a value without quotes" },
    { "<system version=\"1\">\n" CPU GPU "</system>", "line 4: </system> within <cpu>" },
    { "<system version=\"1\">\n" CPU GPU "</cpu>\n", "line 5: the file ends within <system>" },
    { "<system version=\"1\">\n<cpu numaid=\"0", "line 2: the file ends within a tag" },
    { "</cpu>\n" SYSTEM(GPU), "line 1: </cpu> within <>" },
    { "<!-- no end\n" SYSTEM(GPU), "line 1: a comment without its end" },
    { "<!--a=b-->\n" SYSTEM(GPU), "line 1: a comment with \"=\" in its first word" },
    { "<system>\n" CPU GPU "</cpu></system>", "line 1: version=\"1\" is missing" },
    { "<system version=\"2\">\n" CPU GPU "</cpu></system>", "line 1: version=\"1\" is missing" },
    { "<system version=\"1\">\n<cpu>\n" GPU "</cpu></system>", "line 2: a <cpu> without numaid" },
    { SYSTEM("<pci class=\"0x020000\"/>"), "line 3: a <pci> without busid" },
    { "", "has no <system>, so NCCL goes without it" },
    { "<topology version=\"1\"/>", "has no <system>" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check_system(cases[i].text);
    assert_told(DOCTOR_BAD, cases[i].says);
    assert_int_equal(told_counts[DOCTOR_GOOD], 0);
  }
}

UNIT_TEST(nccl_has_limits) {
  char text[32768] = "<system version=\"1\">\n" CPU;
  for (int i = 0; i < 254; i++) { /* with <system> and <cpu> these are 256 */
    strcat(text, GPU);
  }
  strcat(text, "</cpu></system>");
  check_system(text);
  assert_told(DOCTOR_BAD, "line 256: NCCL reads less than 256 elements");
  char wide[1024];
  snprintf(wide, sizeof wide, "<system version=\"1\" name=\"%0300d\"/>", 1);
  check_system(wide);
  assert_told(DOCTOR_BAD, "a value of more than 254 characters");
  snprintf(wide, sizeof wide, "<%0300d/>", 1);
  check_system(wide);
  assert_told(DOCTOR_BAD, "a name of more than 254 characters");
}

UNIT_TEST(devices_of_other_machines_are_named) {
  check_system(SYSTEM(GPU "<pci busid=\"0000:a0:1b.0\" class=\"0x020000\"/>\n"));
  assert_told(DOCTOR_HINT, "line 4: this machine has no 0000:a0:1b.0; 1 of the file's 2");
  check_system(SYSTEM("<pci busid=\"0000:a0:1b.0\" class=\"0x020700\"/>\n"
                      "<pci busid=\"0000:a0:1c.0\" class=\"0x030000\"/>\n"));
  assert_told(DOCTOR_BAD, "line 3: this machine has no 0000:a0:1b.0; 2 of the file's 2 GPUs "
                          "and NICs are not here: it is of another machine");
  check_system(SYSTEM(GPU NIC("mlx5_7", "")));
  assert_told(DOCTOR_HINT, "line 4: this host has no NIC mlx5_7; NCCL passes over it");
  check_system(SYSTEM(GPU NIC("mlx5_7", " dev=\"0\" keep=\"1\"")));
  assert_told(DOCTOR_BAD, "line 4: this host has no NIC mlx5_7, and keep=\"1\" makes");
  check_system(SYSTEM(GPU NIC("../../bus", "")));
  assert_told(DOCTOR_HINT, "no NIC ../../bus");
}

UNIT_TEST(files_that_are_not_there) {
  char path[TREE_PATH_MAX];
  told_clear();
  topology_file_check_system("/nowhere/topo.xml", tree.root);
  assert_told(DOCTOR_BAD, "NCCL_TOPO_FILE=/nowhere/topo.xml: No such file or directory; NCCL "
                          "goes without it");
  told_clear();
  topology_file_check_graph("/nowhere/graph.xml", 1);
  assert_told(DOCTOR_BAD, "NCCL_GRAPH_FILE=/nowhere/graph.xml: No such file or directory; NCCL "
                          "ends with an error");
  told_clear();
  topology_file_check_system(tree.root, tree.root);
  assert_told(DOCTOR_BAD, "is no file");
  assert_int_equal(mkfifo(tree_path(&tree, "pipe", path), 0600), 0);
  told_clear();
  topology_file_check_system(path, tree.root);
  assert_told(DOCTOR_BAD, "is no file");
  told_clear();
  topology_file_check_system("nowhere.xml", tree.root);
  assert_told(DOCTOR_HINT, "NCCL_TOPO_FILE=nowhere.xml: a relative path: each process looks");
}

#define GRAPHS(inside)                                                                             \
  "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\">\n<channel>\n" inside                     \
  "</channel>\n</graph>\n</graphs>\n"

UNIT_TEST(graphs_name_devices_that_are_there) {
  check_graph(GRAPHS("<net dev=\"0\"/><gpu dev=\"0\"/><net dev=\"1\"/>"), 2);
  assert_told(DOCTOR_GOOD, "NCCL can read it");
  check_graph(GRAPHS("<net dev=\"0\"/>\n<net dev=\"a\"/>"), 10);
  assert_told(DOCTOR_BAD, "line 5: <net dev=\"a\">, and this host has 10 devices, from 0 on");
  check_graph(GRAPHS("<net dev=\"1\"/>"), 1);
  assert_told(DOCTOR_BAD, "line 4: <net dev=\"1\">, and this host has 1 device, from 0 on");
  check_graph(GRAPHS("<net/>"), 1);
  assert_told(DOCTOR_BAD, "line 4: a <net> or <gpu> without dev");
  check_graph("<?xml version=\"1.0\"?>" GRAPHS(""), 1);
  assert_told(DOCTOR_BAD, "line 1: <?xml...>");
  check_graph("<graphs/>", 1);
  assert_told(DOCTOR_BAD, "line 1: version=\"1\" is missing");
  check_graph(SYSTEM(GPU), 1);
  assert_told(DOCTOR_BAD, "has no <graphs>");
}

UNIT_MAIN(set_up, tear_down)
