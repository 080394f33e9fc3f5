/* SPDX-License-Identifier: Apache-2.0 */
/* topology: the texts of invented machines, what changes them and what must not. */
#include "common/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/param.h"
#include "common/sysfs.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

static int stop(void **state) {
  param_load((char *[]){ NULL });
  return test_tree_remove(state);
}

/* Files of the tree may have changed. */
static void assert_text(const char *root, const char *expected) {
  free(topology_read("/nowhere"));
  char *text = topology_read(root);
  assert_non_null(text);
  assert_string_equal(text, expected);
  free(text);
}

/* ---- invented machines ---- */

#define TOPOLOGY_TEST(function) UNIT_TEST_WITH(function, test_tree_create, stop)

TOPOLOGY_TEST(each_machine_has_its_text) {
  static const struct {
    const char *machine, *id, *text;
  } cases[] = {
    { "aws-p4d", "90542e82ec6a", "numa 2: 2 x node[4 x gpu 10de:20b0, nic 1d0f:ec20 ena]" },
    { "gcp-a2-highgpu-1g", "9b3588bfbfa0",
      "numa 1: node[root(gpu 10de:20b0, nic 1ae0:0042 gvnic)]" },
    { "azure-nc24", "da951061c70d",
      "numa 2: node[gpu 10de:20b5, nic 15b3:101a mlx5_core], unplaced[nic hv_netvsc]" },
    { "gcp-a3-mega", "68cb936f6a68", "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 1ae0:0042 gve]" },
    { "azure-nd-h100", "1cadad5d990d",
      "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101a mlx5_core]" },
    { "alibaba", "c6e9e40f8e6c", "numa 2: unplaced[8 x gpu 10de:20b2, nic 1af4:1041 virtio_net]" },
    { "oci-h100", "f3d1c9d4e856",
      "numa 2: unplaced[8 x gpu 10de:2330, nic 15b3:101d mlx5_core, "
      "16 x nic 15b3:1021 mlx5_core]" },
    { "tencent", "c7ab8352fa2f", "numa 2: unplaced[8 x gpu 10de:20b0, nic 1af4:1000 virtio_net]" },
    { "baremetal-roce", "71c8069f5270",
      "numa 2: unplaced[8 x gpu 10de:2330, 9 x nic 15b3:1021 mlx5_core]" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    static char root[128];
    char id[TOPOLOGY_ID_MAX];
    snprintf(root, sizeof root, "tests/data/machines/%s", cases[i].machine);
    assert_text(root, cases[i].text);
    sysfs_process_root = root;
    topology_identify(id);
    assert_string_equal(id, cases[i].id);
  }
}

/* ---- a machine of several switches ---- */

/* Two sockets; on each, two switches with two GPUs and two NICs; a NIC for other things on a root
 * port. */
struct wishes {
  int first_bus;       /* where enumeration begins */
  bool is_backwards;   /* NUMA nodes and slots the other way round */
  bool has_extras;     /* a virtual function, USB, memory without CPUs */
  int gpus_per_switch; /* 0: 2 */
};

/* As hwloc writes a machine. */
struct xml {
  char *text;
  size_t length;
  FILE *file;
  int objects;
};

static void write_object(struct xml *xml, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void write_object(struct xml *xml, const char *type, const char *format, ...) {
  va_list values;
  va_start(values, format);
  fprintf(xml->file, "<object type=\"%s\" gp_index=\"%d\" ", type, ++xml->objects);
  vfprintf(xml->file, format, values);
  fputs(">\n", xml->file);
  va_end(values);
}

static void write_end(struct xml *xml) {
  fputs("</object>\n", xml->file);
}

#define SETS(mask)                                                                                 \
  "cpuset=\"" mask "\" complete_cpuset=\"" mask "\" nodeset=\"" mask "\" complete_nodeset=\"" mask \
  "\""

static void begin_machine(struct xml *xml) {
  *xml = (struct xml){ .file = open_memstream(&xml->text, &xml->length) };
  assert_non_null(xml->file);
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n",
        xml->file);
}

static void end_machine(struct xml *xml) {
  fputs("</object>\n</topology>\n", xml->file);
  assert_int_equal(fclose(xml->file), 0);
  tree_write(&test_tree, "topology.xml", "%s", xml->text);
  free(xml->text);
}

/* A package with its node and one CPU, both of this number. */
static void begin_package(struct xml *xml, int number) {
  const char *sets = number == 0 ? SETS("0x1") : SETS("0x2");
  write_object(xml, "Package", "os_index=\"%d\" %s", number, sets);
  write_object(xml, "NUMANode", "os_index=\"%d\" %s local_memory=\"1048576\"", number, sets);
  write_end(xml);
  write_object(xml, "PU", "os_index=\"%d\" %s", number, sets);
  write_end(xml);
}

static void begin_root(struct xml *xml, int first, int last) {
  write_object(xml, "Bridge", "bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[%02x-%02x]\"",
               first, last);
}

static void begin_bridge(struct xml *xml, int bus, int slot, int first, int last) {
  write_object(xml, "Bridge",
               "bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:[%02x-%02x]\" "
               "pci_busid=\"0000:%02x:%02x.0\" pci_type=\"0604 [10b5:8796] [0000:0000] 00\" "
               "pci_link_speed=\"0.000000\"",
               first, last, bus, slot);
}

static void begin_function(struct xml *xml, int bus, int slot, int function, const char *type) {
  write_object(xml, "PCIDev",
               "pci_busid=\"0000:%02x:%02x.%d\" pci_type=\"%s [0000:0000] 00\" "
               "pci_link_speed=\"0.000000\"",
               bus, slot, function, type);
}

static void write_device(struct xml *xml, const char *name, int type) {
  write_object(xml, "OSDev", "name=\"%s\" osdev_type=\"%d\"", name, type);
  write_end(xml);
}

/* What hwloc does not know. */
static void write_driver(const char *device, const char *driver) {
  char path[256], link[256];
  snprintf(path, sizeof path, "%s/driver", device);
  snprintf(link, sizeof link, "%s/drivers/%s", test_tree.root, driver);
  tree_link(&test_tree, path, link);
  snprintf(path, sizeof path, "drivers/%s", driver);
  tree_make_directory(&test_tree, path);
}

static void write_nic(struct xml *xml, int bus, int slot, const char *type, const char *driver,
                      const char *name) {
  char path[256];
  begin_function(xml, bus, slot, 0, type);
  write_device(xml, name, 2);
  write_end(xml);
  snprintf(path, sizeof path, "sys/bus/pci/devices/0000:%02x:%02x.0", bus, slot);
  write_driver(path, driver);
}

static void write_switch(struct xml *xml, const struct wishes *w, int root, int number) {
  int gpus = w->gpus_per_switch ? w->gpus_per_switch : 2, bus = root + 1;
  begin_root(xml, root, root + 8);
  begin_bridge(xml, root, 1, bus, root + 8);
  begin_bridge(xml, bus, 0, bus + 1, root + 8);
  for (int i = 0; i < gpus + 2; i++) {
    int slot = w->is_backwards ? gpus + 1 - i : i;
    char name[32];
    begin_bridge(xml, bus + 1, slot, bus + 2 + slot, bus + 2 + slot);
    if (i < gpus) {
      begin_function(xml, bus + 2 + slot, 0, 0, "0302 [10de:2330]");
      write_end(xml);
    } else {
      snprintf(name, sizeof name, "ib%d", 2 * number + i - gpus);
      write_nic(xml, bus + 2 + slot, 0, "0207 [15b3:1021]", "mlx5_core", name);
    }
    write_end(xml);
  }
  for (int i = 0; i < 3; i++) {
    write_end(xml);
  }
}

static void write_extras(struct xml *xml) {
  begin_function(xml, 0, 2, 1, "0200 [8086:1564]");
  write_device(xml, "vf0", 2);
  write_end(xml);
  tree_make_directory(&test_tree, "sys/bus/pci/devices/0000:00:02.1/physfn");
  write_device(xml, "bmc0", 2);
  tree_write(&test_tree, "sys/class/net/bmc0/device/bInterfaceNumber", "00\n");
}

static void write_machine(const struct wishes *w) {
  struct xml xml;
  tree_remove(&test_tree);
  tree_create(&test_tree);
  begin_machine(&xml);
  write_object(&xml, "Machine",
               "os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" "
               "nodeset=\"%s\" complete_nodeset=\"%s\" allowed_nodeset=\"%s\"",
               w->has_extras ? "0x7" : "0x3", w->has_extras ? "0x7" : "0x3",
               w->has_extras ? "0x7" : "0x3");
  if (w->has_extras) {
    write_object(&xml, "NUMANode",
                 "os_index=\"2\" cpuset=\"0x0\" complete_cpuset=\"0x0\" nodeset=\"0x4\" "
                 "complete_nodeset=\"0x4\" local_memory=\"1048576\"");
    write_end(&xml);
  }
  for (int node = 0; node < 2; node++) {
    begin_package(&xml, node);
    for (int i = 0; i < 2; i++) {
      int place = 2 * node + i;
      write_switch(&xml, w, w->first_bus + 0x20 * place, w->is_backwards ? 3 - place : place);
    }
    if (node == 0) {
      begin_root(&xml, 0, 0);
      write_nic(&xml, 0, 2, "0200 [8086:1563]", "ixgbe", w->is_backwards ? "eth9" : "eth0");
      begin_function(&xml, 0, 0x1f, 0, "0106 [8086:1bca]");
      write_end(&xml);
      if (w->has_extras) {
        write_extras(&xml);
      }
      write_end(&xml);
    }
    write_end(&xml);
  }
  end_machine(&xml);
}

#define MACHINE(gpus)                                                                              \
  "numa 2: node[2 x " SWITCH(gpus) "], node[nic 8086:1563 ixgbe, 2 x " SWITCH(gpus) "]"
#define SWITCH(gpus) "switch(" gpus "gpu 10de:2330, 2 x nic 15b3:1021 mlx5_core)"

TOPOLOGY_TEST(paths_and_nodes_are_in_the_text) {
  write_machine(&(struct wishes){ .first_bus = 0x10 });
  assert_text(test_tree.root, MACHINE("2 x "));
}

TOPOLOGY_TEST(another_boot_changes_nothing) {
  write_machine(&(struct wishes){ .first_bus = 0x18, .is_backwards = true });
  assert_text(test_tree.root, MACHINE("2 x "));
}

TOPOLOGY_TEST(what_comes_and_goes_changes_nothing) {
  write_machine(&(struct wishes){ .first_bus = 0x10, .has_extras = true });
  assert_text(test_tree.root, MACHINE("2 x "));
}

TOPOLOGY_TEST(another_shape_is_another_text) {
  write_machine(&(struct wishes){ .first_bus = 0x10, .gpus_per_switch = 1 });
  assert_text(test_tree.root, MACHINE(""));
}

static void begin_small_machine(struct xml *xml) {
  begin_machine(xml);
  write_object(xml, "Machine",
               "os_index=\"0\" " SETS("0x1") " allowed_cpuset=\"0x1\" allowed_nodeset=\"0x1\"");
  begin_package(xml, 0);
}

static void end_small_machine(struct xml *xml) {
  write_end(xml);
  end_machine(xml);
}

TOPOLOGY_TEST(switches_behind_switches_are_told) {
  struct xml xml;
  begin_small_machine(&xml);
  begin_root(&xml, 0, 9);
  begin_bridge(&xml, 0, 1, 1, 9);
  begin_bridge(&xml, 1, 0, 2, 4);
  for (int slot = 0; slot < 2; slot++) {
    begin_bridge(&xml, 2, slot, 3 + slot, 3 + slot);
    begin_function(&xml, 3 + slot, 0, 0, "0302 [10de:2330]");
    write_end(&xml);
    write_end(&xml);
  }
  write_end(&xml);
  begin_function(&xml, 1, 1, 0, "0200 [8086:1563]");
  write_end(&xml);
  write_end(&xml);
  begin_function(&xml, 0, 2, 0, "0200 [8086:1564]");
  write_end(&xml);
  write_end(&xml);
  write_device(&xml, "eth7", 2); /* not on PCI */
  write_driver("sys/class/net/eth7/device", "hv_netvsc");
  end_small_machine(&xml);
  assert_text(test_tree.root, "numa 1: node[nic hv_netvsc, root(nic 8086:1564, "
                              "switch(nic 8086:1563, switch(2 x gpu 10de:2330)))]");
}

/* ---- what is near ---- */

static void assert_near(const char *root, const char *path, int node, const char *cpus) {
  cpu_set_t near;
  char text[CPU_SETSIZE + 1] = "";
  assert_int_equal(topology_near(root, path, &near), node);
  for (size_t cpu = 0; cpu < 8; cpu++) {
    text[cpu] = CPU_ISSET(cpu, &near) ? '1' : '0';
  }
  assert_string_equal(text, cpus);
}

TOPOLOGY_TEST(devices_are_near_the_node_of_their_bus) {
  write_machine(&(struct wishes){ .first_bus = 0x10 });
  free(topology_read("/nowhere"));
  assert_near(test_tree.root, "/sys/devices/pci0000:10/0000:13:00.0", 0, "10000000");
  assert_near(test_tree.root, "0000:50/0000:53:00.0", 1, "01000000");
  assert_near(test_tree.root, "/sys/devices/0000:99:00.0", -1, "00000000"); /* plugged in since */
  assert_near(test_tree.root, "/sys/devices/virtual/net/veth0", -1, "00000000");
  assert_near(test_tree.root, "", -1, "00000000");
  assert_near("/nowhere", "/sys/devices/pci0000:10/0000:13:00.0", -1, "00000000");
  /* of a machine whose firmware does not tell */
  assert_near("tests/data/machines/gcp-a3-mega", "/0000:80:00.0", -1, "00000000");
}

/* ---- hwloc's surroundings ---- */

/* Each of these would change what is seen, or end the process. */
TOPOLOGY_TEST(no_variable_of_hwlocs_counts) {
  static const char *const names[] = { "HWLOC_XMLFILE",      "HWLOC_SYNTHETIC",
                                       "HWLOC_FSROOT",       "HWLOC_COMPONENTS",
                                       "HWLOC_PLUGINS_PATH", "HWLOC_THISSYSTEM",
                                       "HWLOC_PCI_LOCALITY" };
  free(topology_read("/nowhere"));
  char *before = topology_read("/");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    setenv(names[i], test_tree.root, 1);
  }
  free(topology_read("/nowhere"));
  char *after = topology_read("/");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    unsetenv(names[i]);
  }
  assert_int_equal(!before, !after);
  assert_string_equal(before ? before : "", after ? after : "");
  free(before);
  free(after);
}

/* ---- fingerprints ---- */

TOPOLOGY_TEST(machine_without_devices_has_none) {
  char id[TOPOLOGY_ID_MAX] = "x";
  struct xml xml;
  assert_null(topology_read("/nowhere"));
  begin_small_machine(&xml);
  end_small_machine(&xml);
  assert_null(topology_read(test_tree.root));
  topology_fingerprint(NULL, id);
  assert_string_equal(id, "");
}

TOPOLOGY_TEST(what_is_no_topology_is_none) {
  static const char *const texts[] = { "", "<topology", "<topology version=\"2.0\">\n</topology>\n",
                                       "<topology version=\"2.0\"><object type=\"Machine\"/>" };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_null(topology_read("/nowhere"));
    tree_write(&test_tree, "topology.xml", "%s", texts[i]);
    assert_null(topology_read(test_tree.root));
  }
}

TOPOLOGY_TEST(users_word_comes_first) {
  char id[TOPOLOGY_ID_MAX];
  log_capture_start();
  sysfs_process_root = "tests/data/machines/aws-p4d";
  char word[] = "STRATUS_TOPOLOGY=0123456789ab";
  param_load((char *[]){ word, NULL });
  topology_identify(id);
  assert_string_equal(id, "0123456789ab");
  assert_int_equal(log_capture_count(LOG_LEVEL_WARN), 0);
  char bad[] = "STRATUS_TOPOLOGY=0123456789AB";
  param_load((char *[]){ bad, NULL });
  topology_identify(id);
  assert_string_equal(id, "90542e82ec6a");
  assert_int_equal(log_capture_find("STRATUS_TOPOLOGY=0123456789AB is ignored"), 1);
  log_capture_stop();
}

TOPOLOGY_TEST(only_fingerprints_are_fingerprints) {
  assert_true(topology_is_id("0123456789ab", 12));
  assert_false(topology_is_id("0123456789abc", 13));
  assert_false(topology_is_id("0123456789a", 11));
  assert_false(topology_is_id("0123456789ag", 12));
  assert_false(topology_is_id("01234\0006789ab", 12));
  assert_false(topology_is_id("", 0));
}
