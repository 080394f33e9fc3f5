/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc's network interfaces are its "OS devices" with their names. */
#include "net_plugin/plugin/locality.h"

#if __has_include(<hwloc.h>)

#include <hwloc.h>
#include <sched.h>
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
  int (*hwloc_bitmap_isset)(hwloc_const_bitmap_t bitmap, unsigned index);
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
  DYNLIB_REQUIRED(struct hwloc_functions, hwloc_bitmap_isset),
  { 0 },
};

/* What the interface hangs on; NULL if hwloc does not know it. */
static hwloc_obj_t find_place(const struct hwloc_functions *hwloc, hwloc_topology_t topology,
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
    return object && object->parent ? object : NULL;
  }
  return NULL;
}

static void read_one(const struct hwloc_functions *hwloc, hwloc_topology_t topology,
                     struct nic *nic, cpu_set_t *near) {
  hwloc_obj_t place = find_place(hwloc, topology, nic->name);
  int node = place ? hwloc->hwloc_bitmap_first(place->nodeset) : -1;
  if (node < 0) {
    return;
  }
  nic->numa_node = node;
  CPU_ZERO(near);
  for (unsigned cpu = 0; place->cpuset && cpu < CPU_SETSIZE; cpu++) {
    if (hwloc->hwloc_bitmap_isset(place->cpuset, cpu)) {
      CPU_SET(cpu, near);
    }
  }
}

void locality_read(struct nic *nics, cpu_set_t *near, unsigned count) {
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
        read_one(&hwloc, topology, &nics[i], &near[i]);
      }
    }
    hwloc.hwloc_topology_destroy(topology);
  }
  dynlib_close(&library);
}

#else /* built without hwloc's header: sysfs alone has it */

void locality_read(struct nic *nics, cpu_set_t *near, unsigned count) {
  (void)nics;
  (void)near;
  (void)count;
}

#endif
