/* SPDX-License-Identifier: Apache-2.0 */
/* stratus-tune topology: a file for NCCL_TOPO_FILE on machines whose kernel does not see where GPUs
 * are.
 *
 * Such virtual machines have all GPUs at one PCI root and near no NUMA node, and NCCL then takes
 * rings that cross the processors' link again and again. Where the GPUs are is known from the
 * instance type, or the user says it: GPUs are numbered over NUMA nodes and switches in the order
 * of their PCI addresses. NCCL fills in the rest (src/graph/xml.cc at v2.29.7-1). */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/machine.h"
#include "common/param.h"
#include "common/pci.h"
#include "common/plain.h"
#include "common/sysfs.h"
#include "tuner_plugin/tools/tune.h"

static struct {
  const char *output; /* NULL: stdout */
  const char *type;   /* NULL: this machine's */
  int64_t nodes;      /* 0: not given */
  int64_t switches;
} options;

static const struct cli_option option_rows[] = {
  { "output", 'o', CLI_STRING, &options.output, "FILE", "write to it", 0, 0 },
  { "type", 0, CLI_STRING, &options.type, "TYPE", "instance type, where it is not this machine's",
    0, 0 },
  { "nodes", 0, CLI_INT, &options.nodes, "N",
    "the GPUs are on N NUMA nodes, in the order of their addresses", 1, 64 },
  { "switches", 0, CLI_INT, &options.switches, "N",
    "and behind N PCI switches, each with as many NICs", 1, 64 },
  { 0 },
};

enum { DEVICES_MAX = 64, LINK_MAX = 32 };

struct layout {
  const char *type; /* of the instance; NULL: the user's */
  int gpus, nodes, switches;
  const char *link; /* of the switches */
};

/* AWS: aws-ofi-nccl, topology/ g5.48xl-topo.xml, p4d-24xl-topo.xml, p4de-24xl-topo.xml. */
static const struct layout layouts[] = {
  { "g5.48xlarge", 8, 2, 0, NULL },
  { "p4d.24xlarge", 8, 2, 4, "8.0 GT/s PCIe" },
  { "p4de.24xlarge", 8, 2, 4, "8.0 GT/s PCIe" },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

struct device {
  char address[16]; /* "0000:00:1b.0" */
  char id[PCI_ID_MAX];
  uint32_t class_code;
  int64_t numa;         /* -1: not known */
  char speed[LINK_MAX]; /* "16.0 GT/s PCIe"; empty: not known */
  int64_t width;
};

struct devices {
  struct device at[DEVICES_MAX];
  int count;
};

struct inventory {
  struct devices gpus, nics;
};

/* ---- what there is ---- */

static void read_link(const char *root, const char *path, struct device *device) {
  char speed[SYSFS_TEXT_MAX];
  bool is_known = sysfs_read_text(root, speed, sizeof speed, "%s/max_link_speed", path) > 0 &&
                  strstr(speed, "GT/s") && strlen(speed) < LINK_MAX &&
                  sysfs_read_int(root, &device->width, "%s/max_link_width", path) == 0 &&
                  device->width > 0;
  if (is_known) {
    snprintf(device->speed, sizeof device->speed, "%.*s", LINK_MAX - 1, speed);
  }
}

static void read_function(const char *root, const char *address, struct inventory *all) {
  struct pci_function function;
  struct device found = { .numa = -1 };
  char path[64];
  snprintf(path, sizeof path, "sys/bus/pci/devices/%.20s", address);
  if (strlen(address) >= sizeof found.address || !pci_read(root, path, &function) ||
      sysfs_exists(root, "%s/physfn", path)) {
    return;
  }
  bool is_gpu = pci_is_gpu(&function);
  struct devices *kind = is_gpu ? &all->gpus : &all->nics;
  if ((!is_gpu && !pci_is_nic(&function)) || kind->count == DEVICES_MAX) {
    return;
  }
  strcpy(found.address, address);
  pci_format_id(&function, found.id);
  found.class_code = function.class_code;
  if (sysfs_read_int(root, &found.numa, "%s/numa_node", path) < 0 || found.numa > INT16_MAX) {
    found.numa = -1;
  }
  read_link(root, path, &found);
  kind->at[kind->count++] = found;
}

static int by_address(const void *a, const void *b) {
  return strcmp(((const struct device *)a)->address, ((const struct device *)b)->address);
}

static void read_inventory(struct inventory *all) {
  const char *root = param_string(PARAM_SYSFS_ROOT);
  struct sysfs_list list;
  memset(all, 0, sizeof *all);
  if (sysfs_list(root, &list, "sys/bus/pci/devices") < 0) {
    return;
  }
  for (size_t i = 0; i < list.count; i++) {
    read_function(root, list.entries[i]->d_name, all);
  }
  sysfs_list_free(&list);
  qsort(all->gpus.at, (size_t)all->gpus.count, sizeof all->gpus.at[0], by_address);
  qsort(all->nics.at, (size_t)all->nics.count, sizeof all->nics.at[0], by_address);
}

/* Only the NICs that are most: those of the data, in step with the GPUs. */
static void keep_data_nics(struct devices *nics, int switches) {
  char best[PCI_ID_MAX] = "";
  int most = 0, kept = 0;
  for (int i = 0; i < nics->count; i++) {
    int same = 0;
    for (int j = 0; j < nics->count; j++) {
      same += strcmp(nics->at[i].id, nics->at[j].id) == 0;
    }
    if (same > most) {
      most = same;
      snprintf(best, sizeof best, "%s", nics->at[i].id);
    }
  }
  for (int i = 0; i < nics->count && switches > 0 && most % switches == 0; i++) {
    if (strcmp(nics->at[i].id, best) == 0) {
      nics->at[kept++] = nics->at[i];
    }
  }
  nics->count = kept;
}

/* ---- where it is ---- */

static int choose_layout(const char *type, const struct inventory *all, struct layout *layout) {
  *layout = (struct layout){ .gpus = all->gpus.count, .link = "16.0 GT/s PCIe" };
  for (int i = 0; i < LAYOUTS; i++) {
    if (strcmp(layouts[i].type, type) == 0) {
      *layout = layouts[i];
    }
  }
  if (options.nodes > 0 || options.switches > 0) {
    layout->type = NULL;
    layout->gpus = all->gpus.count;
    layout->nodes = options.nodes > 0 ? (int)options.nodes : 1;
    layout->switches = (int)options.switches;
  }
  if (layout->nodes == 0) {
    return 0;
  }
  if (layout->gpus != all->gpus.count) {
    return cli_fail("topology: %s has %d GPUs, but this machine shows %d", type, layout->gpus,
                    all->gpus.count);
  }
  if (layout->gpus % layout->nodes != 0 ||
      (layout->switches > 0 &&
       (layout->gpus % layout->switches != 0 || layout->switches % layout->nodes != 0))) {
    return cli_fail("topology: %d GPUs cannot be divided evenly over %d NUMA nodes and %d switches",
                    layout->gpus, layout->nodes, layout->switches);
  }
  return 0;
}

/* True if NCCL finds out all of it by itself, as far as one can tell. */
static bool is_seen(const struct inventory *all, const struct machine *machine) {
  bool is_placed = true;
  for (int i = 0; i < all->gpus.count; i++) {
    is_placed = is_placed && (all->gpus.at[i].numa >= 0 || machine->numa_count <= 1);
  }
  return is_placed;
}

static int say_why_none(const struct inventory *all, const struct machine *machine,
                        const char *type) {
  if (all->gpus.count == 0) {
    return cli_fail("topology: there is no NVIDIA GPU on this machine's PCI bus");
  }
  if (is_seen(all, machine)) {
    cli_fail("topology: the kernel knows the NUMA node of each GPU, so NCCL needs no file; --nodes "
             "and --switches make one all the same");
    return CLI_OK;
  }
  cli_fail("topology: the kernel does not know where the %d GPUs are, and nothing is known of "
           "instance type %s; give --nodes (and --switches). Known: g5.48xlarge, p4d.24xlarge, "
           "p4de.24xlarge",
           all->gpus.count, *type ? type : "(unknown)");
  return CLI_FAILED;
}

/* ---- the file ---- */

static void print_device(FILE *out, const struct device *device, const char *indent) {
  fprintf(out, "%s<pci busid=\"%s\" class=\"0x%06" PRIx32 "\"", indent, device->address,
          device->class_code);
  if (device->speed[0]) {
    fprintf(out, " link_speed=\"%s\" link_width=\"%" PRId64 "\"", device->speed, device->width);
  }
  fprintf(out, "/>\n");
}

/* The devices of one switch, or of one NUMA node without any. */
static void print_group(FILE *out, const struct inventory *all, int group, int groups,
                        const char *indent) {
  const struct devices *const kinds[] = { &all->gpus, &all->nics };
  for (size_t kind = 0; kind < 2; kind++) {
    int each = kinds[kind]->count / groups;
    for (int i = 0; i < each; i++) {
      print_device(out, &kinds[kind]->at[group * each + i], indent);
    }
  }
}

/* Each rank of NCCL finds out about the processors near its own GPU only, and wants all of them to
 * be known; numbers as it counts them (ncclTopoGetXmlFromCpu, src/graph/xml.cc at v2.29.7-1). */
static void print_cpu(FILE *out, int node) {
  char map[SYSFS_TEXT_MAX];
  fprintf(out, "  <cpu numaid=\"%d\"", node);
  if (sysfs_read_text(param_string(PARAM_SYSFS_ROOT), map, sizeof map,
                      "sys/devices/system/node/node%d/cpumap", node) > 0) {
    fprintf(out, " affinity=\"%s\"", plain_text(map));
  }
#if defined(__x86_64__)
  unsigned a = 0, vendor[4] = { 0 }, b, c, d;
  __get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]);
  __get_cpuid(1, &a, &b, &c, &d);
  fprintf(out, " arch=\"x86_64\" vendor=\"%.12s\" familyid=\"%u\" modelid=\"%u\"",
          (const char *)vendor, (a >> 8 & 0xf) + ((a >> 20 & 0xff) << 4),
          (a >> 4 & 0xf) + ((a >> 16 & 0xf) << 4));
#elif defined(__aarch64__)
  fprintf(out, " arch=\"arm64\"");
#endif
  fprintf(out, ">\n");
}

static void print_node(FILE *out, const struct inventory *all, const struct layout *layout,
                       int node) {
  print_cpu(out, node);
  int per_node = layout->switches / layout->nodes;
  for (int i = node * per_node; i < (node + 1) * per_node; i++) {
    /* Addresses that no machine has: only NCCL's search sees them. */
    fprintf(out,
            "    <pci busid=\"ffff:ff:%02x.0\" class=\"0x060400\" link_speed=\"%s\" "
            "link_width=\"16\">\n",
            (unsigned)i + 1, layout->link);
    print_group(out, all, i, layout->switches, "      ");
    fprintf(out, "    </pci>\n");
  }
  if (per_node == 0) {
    print_group(out, all, node, layout->nodes, "    ");
  }
  fprintf(out, "  </cpu>\n");
}

static int print_file(const struct inventory *all, const struct layout *layout) {
  const char *path = options.output;
  FILE *out = path ? fopen(path, "we") : stdout;
  if (!out) {
    return cli_fail("%s: %s", path, strerror(errno));
  }
  fprintf(out, "<system version=\"1\">\n");
  for (int node = 0; node < layout->nodes; node++) {
    print_node(out, all, layout, node);
  }
  fprintf(out, "</system>\n");
  bool is_good = fflush(out) == 0 && !ferror(out);
  is_good = (out == stdout || fclose(out) == 0) && is_good;
  if (!is_good) {
    return cli_fail("%s: %s", path ? path : "standard output", strerror(errno));
  }
  if (path) {
    char *whole = realpath(path, NULL); /* processes of a job have other working directories */
    printf("%s: %d GPUs on %d NUMA nodes, %d switches, from %s\nset NCCL_TOPO_FILE=%s on every "
           "host of this kind\n",
           path, layout->gpus, layout->nodes, layout->switches,
           layout->type ? layout->type : "--nodes and --switches", whole ? whole : path);
    free(whole);
  }
  return CLI_OK;
}

static int run(int argument_count, char **arguments, bool is_json) {
  (void)argument_count, (void)arguments, (void)is_json;
  static struct machine machine; /* too large for the stack */
  static struct inventory all;
  struct layout layout;
  machine_identify(&machine);
  const char *type = options.type ? options.type : machine.instance_type;
  read_inventory(&all);
  if (choose_layout(type, &all, &layout) != 0) {
    return CLI_FAILED;
  }
  if (layout.nodes == 0 || all.gpus.count == 0) {
    return say_why_none(&all, &machine, type);
  }
  keep_data_nics(&all.nics, layout.switches);
  return print_file(&all, &layout);
}

const struct cli_command tune_topology = {
  .name = "topology",
  .summary = "write a file for NCCL_TOPO_FILE where a virtual machine hides where its GPUs are",
  .arguments = "",
  .example = "STRATUS_SYSFS_ROOT=tests/data/sysfs/aws stratus-tune topology",
  .options = option_rows,
  .run = run,
};
