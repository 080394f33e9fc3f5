/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes of NICs from hwloc, which reads an invented topology. Skipped where there is none. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_plugin/plugin/locality.h"
#include "tests/lib/tree.h"
#include "tests/lib/unit.h"

/* Two packages with a NUMA node each; eth1 is on the second one's PCI bus, eth0 on the first's,
 * eth2 on a bus that belongs to the whole machine. As `lstopo --of xml` writes it, version 2. */
static const char topology[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    " <object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
    "allowed_cpuset=\"0x3\" nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" "
    "gp_index=\"1\">\n"
#define PACKAGE(index, mask, nic)                                                                  \
  "  <object type=\"Package\" os_index=\"" #index "\" cpuset=\"" #mask                             \
  "\" complete_cpuset=\"" #mask "\" nodeset=\"" #mask "\" complete_nodeset=\"" #mask               \
  "\" gp_index=\"1" #index "\">\n"                                                                 \
  "   <object type=\"NUMANode\" os_index=\"" #index "\" cpuset=\"" #mask                           \
  "\" complete_cpuset=\"" #mask "\" nodeset=\"" #mask "\" complete_nodeset=\"" #mask               \
  "\" gp_index=\"2" #index "\" local_memory=\"1048576\"/>\n"                                       \
  "   <object type=\"PU\" os_index=\"" #index "\" cpuset=\"" #mask "\" complete_cpuset=\"" #mask   \
  "\" nodeset=\"" #mask "\" complete_nodeset=\"" #mask "\" gp_index=\"3" #index                    \
  "\"/>\n" BRIDGE(index, nic) "  </object>\n"
#define BRIDGE(index, nic)                                                                         \
  "   <object type=\"Bridge\" gp_index=\"4" #index "\" bridge_type=\"0-1\" depth=\"0\" "           \
  "bridge_pci=\"000" #index ":[00-01]\">\n"                                                        \
  "    <object type=\"PCIDev\" gp_index=\"5" #index "\" pci_busid=\"000" #index ":00:05.0\" "      \
  "pci_type=\"0200 [1d0f:ec20] [0000:0000] 00\" pci_link_speed=\"0.000000\">\n"                    \
  "     <object type=\"OSDev\" gp_index=\"6" #index "\" name=\"" nic "\" osdev_type=\"2\"/>\n"     \
  "    </object>\n"                                                                                \
  "   </object>\n"
    PACKAGE(0, 0x1, "eth0") PACKAGE(1, 0x2, "eth1") BRIDGE(2, "eth2") " </object>\n"
                                                                      "</topology>\n";

UNIT_TEST(nodes_are_those_of_the_bus) {
  void *hwloc = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
  if (!hwloc) {
    SKIP_BECAUSE("no libhwloc.so.15");
  }
  dlclose(hwloc);
  struct tree tree;
  tree_create(&tree);
  tree_write(&tree, "topology.xml", "%s", topology);
  char path[128];
  snprintf(path, sizeof(path), "%s/topology.xml", tree.root);
  setenv("HWLOC_XMLFILE", path, 1);
  struct nic nics[] = {
    { .name = "eth1", .numa_node = -1 },
    { .name = "eth0", .numa_node = 7 },
    { .name = "eth2", .numa_node = -1 },
    { .name = "absent", .numa_node = 5 },
  };
  cpu_set_t near[4];
  memset(near, 0, sizeof(near));
  CPU_SET(9, &near[3]);
  locality_read(nics, near, 4);
  unsetenv("HWLOC_XMLFILE");
  tree_remove(&tree);
  assert_int_equal(nics[0].numa_node, 1);
  assert_int_equal(nics[1].numa_node, 0);
  assert_int_equal(nics[2].numa_node, -1);
  assert_int_equal(nics[3].numa_node, 5); /* as sysfs said */
  assert_true(CPU_COUNT(&near[0]) == 1 && CPU_ISSET(1, &near[0]));
  assert_true(CPU_COUNT(&near[1]) == 1 && CPU_ISSET(0, &near[1]));
  assert_int_equal(CPU_COUNT(&near[2]), 0);
  assert_true(CPU_COUNT(&near[3]) == 1 && CPU_ISSET(9, &near[3]));
}

UNIT_TEST(without_a_topology_nothing_changes) {
  setenv("HWLOC_XMLFILE", "/nonexistent.xml", 1);
  struct nic nic = { .name = "eth0", .numa_node = 3 };
  cpu_set_t near;
  CPU_ZERO(&near);
  locality_read(&nic, &near, 1);
  unsetenv("HWLOC_XMLFILE");
  assert_int_equal(nic.numa_node, 3);
  assert_int_equal(CPU_COUNT(&near), 0);
}

UNIT_MAIN(NULL, NULL)
