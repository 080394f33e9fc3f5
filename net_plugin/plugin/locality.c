/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc's network interfaces are its "OS devices" with their names. */
#include "net_plugin/plugin/locality.h"

#if __has_include(<hwloc.h>)

#include <hwloc.h>
#include <stdbool.h>
#include <string.h>

#include "common/dynlib.h"
#include "common/log.h"

struct hwloc_functions {
  int (*hwloc_topology_init)(hwloc_topology_t *topology);
  int (*hwloc_topology_set_io_types_filter)(hwloc_topology_t topology,
                                            enum hwloc_type_filter_e filter);
  int (*hwloc_topology_load)(hwloc_topology_t topology);
  void (*hwloc_topology_destroy)(hwloc_topology_t topology);
  int (*hwloc_get_type_depth)(hwloc_topology_t topology, hwloc_obj_type_t type);
  unsigned (*hwloc_get_nbobjs_by_depth)(hwloc_topology_t topology, int depth);
  hwloc_obj_t (*hwloc_get_obj_by_depth)(hwloc_topology_t topology, int depth, unsigned index);
  int (*hwloc_bitmap_first)(hwloc_const_bitmap_t bitmap);
};

static const char *const sonames[] = { "libhwloc.so.15", NULL };
static const struct dynlib_symbol symbols[] = {
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_topology_init),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_topology_set_io_types_filter),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_topology_load),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_topology_destroy),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_get_type_depth),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_get_nbobjs_by_depth),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_get_obj_by_depth),
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_bitmap_first),
  { 0 },
};

/* -1 if hwloc does not know the interface or it is near to more than one node. */
static int find_node(const struct hwloc_functions *hwloc, hwloc_topology_t topology,
                     const char *name) {
  int depth = hwloc->hwloc_get_type_depth(topology, HWLOC_OBJ_OS_DEVICE);
  unsigned count = hwloc->hwloc_get_nbobjs_by_depth(topology, depth);
  for (unsigned i = 0; i < count; i++) {
    hwloc_obj_t object = hwloc->hwloc_get_obj_by_depth(topology, depth, i);
    if (!object || !object->name || strcmp(object->name, name) != 0) {
      continue;
    }
    while (object && !object->nodeset) { /* devices have none, what they hang on has */
      object = object->parent;
    }
    /* The machine as a whole is what hwloc falls back to when it does not know. */
    return object && object->parent ? hwloc->hwloc_bitmap_first(object->nodeset) : -1;
  }
  return -1;
}

void locality_read(struct nic *nics, unsigned count) {
  struct dynlib library = { 0 };
  struct hwloc_functions hwloc;
  if (dynlib_open(&library, sonames, symbols, &hwloc)) {
    LOG_TRACE("NUMA nodes of NICs are taken from sysfs: %s", library.reason);
    return;
  }
  hwloc_topology_t topology;
  if (hwloc.hwloc_topology_init(&topology) == 0) {
    if (hwloc.hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
        hwloc.hwloc_topology_load(topology) == 0) {
      for (unsigned i = 0; i < count; i++) {
        int node = find_node(&hwloc, topology, nics[i].name);
        nics[i].numa_node = node >= 0 ? node : nics[i].numa_node;
      }
    }
    hwloc.hwloc_topology_destroy(topology);
  }
  dynlib_close(&library);
}

#else /* built without hwloc's header: sysfs alone tells */

void locality_read(struct nic *nics, unsigned count) {
  (void)nics;
  (void)count;
}

#endif
