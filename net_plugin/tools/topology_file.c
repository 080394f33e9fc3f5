/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL makes of them: ncclTopoGetSystem (src/graph/topo.cc), ncclTopoCompute and
 * ncclTopoGetGraphFromXml (src/graph/search.cc) at v2.30.7. */
#include "net_plugin/tools/doctor_check.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plain.h"
#include "common/sysfs.h"
#include "net_plugin/tools/nccl_xml.h"

enum {
  FILE_MAX_BYTES = 16 << 20, /* NCCL's own of 8 GPUs have 20 KiB */
  TEXT_MAX = 1024,
  SYSTEM_ELEMENTS_MAX = 256, /* NCCL_TOPO_XML_MAX_NODES, src/graph/topo.h */
  ADDRESS_MAX = 16,          /* "0000:10:1c.0" */
};

/* What of a NIC's hexadecimal id is its number: NCCL_TOPO_ID_LOCAL_ID, src/graph/topo.h. */
#define NUMBER_MASK ((UINT64_C(1) << 56) - 1)

static const struct nccl_xml_rule system_rules[] = {
  { "", "system" }, { "system", "cpu" }, { "cpu", "pci" }, { "cpu", "nic" },
  { "pci", "pci" }, { "pci", "gpu" },    { "pci", "nic" }, { "pci", "pcilink" },
  { "nic", "net" }, { "gpu", "nvlink" }, { "gpu", "c2c" }, { "", NULL },
};
static const struct nccl_xml_rule graph_rules[] = {
  { "", "graphs" },     { "graphs", "graph" }, { "graph", "channel" },
  { "channel", "net" }, { "channel", "gpu" },  { "", NULL },
};

struct contents {
  const char *variable, *path, *root;
  int devices, elements;
  bool has_top;
  int wrong_line; /* of the first element that NCCL ends with; 0: none */
  char wrong[TEXT_MAX / 2];
  int absent, present, absent_line; /* GPUs and NICs by their address */
  char absent_name[NCCL_XML_WORD_MAX];
  int kept_line, foreign_line; /* of the first `net` that no NIC here is called as */
  char kept[NCCL_XML_WORD_MAX], foreign[NCCL_XML_WORD_MAX];
};

static void tell(const struct contents *contents, enum doctor_finding finding, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));
static void tell(const struct contents *contents, enum doctor_finding finding, const char *format,
                 ...) {
  char text[TEXT_MAX], all[2 * TEXT_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(all, sizeof all, "%s=%.512s: %s", contents->variable, contents->path, text);
  doctor_tell(finding, "%s", plain_text(all));
}

/* ---- elements ---- */

static void say_wrong(struct contents *contents, int line, const char *why) {
  if (contents->wrong_line == 0) {
    contents->wrong_line = line;
    snprintf(contents->wrong, sizeof contents->wrong, "%s", why);
  }
}

static void check_version(struct contents *contents, const struct nccl_xml_element *element) {
  const char *version = nccl_xml_attribute(element, "version");
  contents->has_top = true;
  if (!version || strtol(version, NULL, 0) != 1) {
    say_wrong(contents, element->line, "version=\"1\" is missing, or another one");
  }
}

static bool is_attribute(const struct nccl_xml_element *element, const char *key,
                         const char *prefix) {
  const char *value = nccl_xml_attribute(element, key);
  return value && strncasecmp(value, prefix, strlen(prefix)) == 0;
}

/* GPUs (class 03) and NICs (02); switches may have invented addresses. */
static void check_pci(struct contents *contents, const struct nccl_xml_element *element) {
  const char *address = nccl_xml_attribute(element, "busid");
  char lower[ADDRESS_MAX];
  if (!address) {
    say_wrong(contents, element->line, "a <pci> without busid");
    return;
  }
  if (!is_attribute(element, "class", "0x02") && !is_attribute(element, "class", "0x03")) {
    return;
  }
  snprintf(lower, sizeof lower, "%s", address);
  for (char *c = lower; *c; c++) {
    *c = (char)tolower((unsigned char)*c);
  }
  if (!strchr(lower, '/') && sysfs_exists(contents->root, "sys/bus/pci/devices/%s", lower)) {
    contents->present++;
  } else if (contents->absent++ == 0) {
    contents->absent_line = element->line;
    snprintf(contents->absent_name, sizeof contents->absent_name, "%s", address);
  }
}

/* NCCL drops those that no plugin has, unless they are marked as a dump marks them. */
static void check_net(struct contents *contents, const struct nccl_xml_element *element) {
  const char *name = nccl_xml_attribute(element, "name");
  const char *keep = nccl_xml_attribute(element, "keep");
  if (!name || (!strchr(name, '/') && *name &&
                (sysfs_exists(contents->root, "sys/class/net/%s", name) ||
                 sysfs_exists(contents->root, "sys/class/infiniband/%s", name)))) {
    return;
  }
  bool is_kept = keep && strcmp(keep, "1") == 0;
  int *line = is_kept ? &contents->kept_line : &contents->foreign_line;
  if (*line == 0) {
    *line = element->line;
    snprintf(is_kept ? contents->kept : contents->foreign, NCCL_XML_WORD_MAX, "%s", name);
  }
}

static void take_system_element(void *context, const struct nccl_xml_element *element) {
  struct contents *contents = context;
  if (++contents->elements == SYSTEM_ELEMENTS_MAX) {
    say_wrong(contents, element->line, "NCCL reads less than 256 elements");
  }
  if (strcmp(element->name, "system") == 0) {
    check_version(contents, element);
  } else if (strcmp(element->name, "cpu") == 0 && !nccl_xml_attribute(element, "numaid")) {
    say_wrong(contents, element->line, "a <cpu> without numaid");
  } else if (strcmp(element->name, "pci") == 0) {
    check_pci(contents, element);
  } else if (strcmp(element->name, "net") == 0) {
    check_net(contents, element);
  }
}

static void take_graph_element(void *context, const struct nccl_xml_element *element) {
  struct contents *contents = context;
  bool is_net = strcmp(element->name, "net") == 0, is_gpu = strcmp(element->name, "gpu") == 0;
  const char *device = nccl_xml_attribute(element, "dev");
  if (strcmp(element->name, "graphs") == 0) {
    check_version(contents, element);
  } else if ((is_net || is_gpu) && !device) {
    say_wrong(contents, element->line, "a <net> or <gpu> without dev");
  } else if (is_net && contents->devices > 0 &&
             (strtoull(device, NULL, 16) & NUMBER_MASK) >= (unsigned)contents->devices) {
    char why[128];
    snprintf(why, sizeof why, "<net dev=\"%.20s\">, and this host has %d device%s, from 0 on",
             device, contents->devices, contents->devices == 1 ? "" : "s");
    say_wrong(contents, element->line, why);
  }
}

/* ---- files ---- */

/* NULL after a finding. A pipe would be emptied for the job. */
static char *read_file(const struct contents *contents, const char *result, size_t *length) {
  struct stat facts;
  int fd = open(contents->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &facts) < 0) {
    tell(contents, DOCTOR_BAD, "%s; %s", strerror(errno), result);
    if (fd >= 0) {
      close(fd);
    }
    return NULL;
  }
  FILE *file = S_ISREG(facts.st_mode) && facts.st_size <= FILE_MAX_BYTES ? fdopen(fd, "r") : NULL;
  char *text = file ? malloc((size_t)facts.st_size + 1) : NULL;
  *length = text ? fread(text, 1, (size_t)facts.st_size, file) : 0;
  if (!text) {
    tell(contents, DOCTOR_BAD, "is no file, or larger than %d MiB; %s", FILE_MAX_BYTES >> 20,
         result);
  }
  if (file) {
    fclose(file);
  } else {
    close(fd);
  }
  return text;
}

static void tell_place(const struct contents *contents) {
  if (contents->path[0] != '/') {
    tell(contents, DOCTOR_HINT,
         "a relative path: each process looks from its own directory; name it from / on");
  }
}

/* False after a finding. */
static bool read_elements(struct contents *contents, const char *text, size_t length,
                          const struct nccl_xml_rule *rules, nccl_xml_fn *take) {
  struct nccl_xml_error error;
  if (nccl_xml_read(text, length, rules, take, contents, &error) < 0) {
    tell(contents, DOCTOR_BAD, "line %d: %s. NCCL ends with \"internal error\"", error.line,
         error.why);
    return false;
  }
  if (contents->wrong_line > 0) {
    tell(contents, DOCTOR_BAD, "line %d: %s. NCCL ends with an error", contents->wrong_line,
         contents->wrong);
    return false;
  }
  if (!contents->has_top) {
    tell(contents, DOCTOR_BAD, "has no <%s>, so NCCL goes without it", rules[0].name);
    return false;
  }
  return true;
}

void topology_file_check_system(const char *path, const char *root) {
  struct contents contents = { .variable = "NCCL_TOPO_FILE", .path = path, .root = root };
  size_t length;
  tell_place(&contents);
  char *text =
      read_file(&contents, "NCCL goes without it, and says so with NCCL_DEBUG=INFO only", &length);
  bool is_read = text && read_elements(&contents, text, length, system_rules, take_system_element);
  free(text);
  if (!is_read) {
    return;
  }
  bool is_other = contents.absent > 0 && contents.present == 0;
  if (contents.absent > 0) {
    tell(&contents, is_other ? DOCTOR_BAD : DOCTOR_HINT,
         "line %d: this machine has no %s; %d of the file's %d GPUs and NICs are not here%s",
         contents.absent_line, contents.absent_name, contents.absent,
         contents.absent + contents.present, is_other ? ": it is of another machine" : "");
  }
  if (contents.kept_line > 0) {
    tell(&contents, DOCTOR_BAD,
         "line %d: this host has no NIC %s, and keep=\"1\" makes NCCL take it for one: take <net> "
         "out of a file that NCCL_TOPO_DUMP_FILE has written",
         contents.kept_line, contents.kept);
  }
  if (contents.foreign_line > 0) {
    tell(&contents, DOCTOR_HINT, "line %d: this host has no NIC %s; NCCL passes over it",
         contents.foreign_line, contents.foreign);
  }
  if (!is_other && contents.kept_line == 0) {
    tell(&contents, DOCTOR_GOOD, "NCCL can read it");
  }
}

void topology_file_check_graph(const char *path, int devices) {
  struct contents contents = { .variable = "NCCL_GRAPH_FILE", .path = path, .devices = devices };
  size_t length;
  tell_place(&contents);
  char *text = read_file(&contents, "NCCL ends with an error", &length);
  if (text && read_elements(&contents, text, length, graph_rules, take_graph_element)) {
    tell(&contents, DOCTOR_GOOD, "NCCL can read it");
  }
  free(text);
}
