/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_check.h. Values are shown in quotes: what NCCL reads is not always what one sees in a
 * file.
 */
#include "net_plugin/tools/doctor_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "net_plugin/tools/doctor_tell.h"

enum { ODDITY_MAX = 128 };

/* ": NCCL takes ... for a part of the value", or nothing. */
static const char *oddity(const char *value, char text[ODDITY_MAX]) {
  const char *odd = nccl_conf_oddity(value);
  text[0] = '\0';
  if (odd) {
    snprintf(text, ODDITY_MAX, ": NCCL takes %s for a part of the value", odd);
  }
  return text;
}

static void tell_variable(const char *name, const char *meaning) {
  const struct nccl_conf_setting setting = nccl_conf_find(name);
  if (setting.value && *setting.value) {
    char quoted[QUOTE_MAX], where[NCCL_CONF_WHERE_MAX], odd[ODDITY_MAX];
    doctor_tell(DOCTOR_HINT, "%s=%s (%s) %s%s", name, quote(setting.value, quoted),
                nccl_conf_where(setting.file, setting.line, where), meaning,
                oddity(setting.value, odd));
  }
}

static bool is_variable_name(const char *name) {
  static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  return *name && name[strspn(name, taken)] == '\0';
}

static bool is_secret(const char *name) {
  return strcmp(name, "STRATUS_SECRET") == 0;
}

static void tell_line(const struct nccl_conf_line *line) {
  char name[QUOTE_MAX], value[QUOTE_MAX], where[NCCL_CONF_WHERE_MAX], other[NCCL_CONF_WHERE_MAX];
  char odd[ODDITY_MAX];
  nccl_conf_where(line->file, line->number, where);
  quote(line->name, name);
  if (!line->value) {
    doctor_tell(DOCTOR_HINT, "%s: %s is not NAME=value, so NCCL skips it", where, name);
    return;
  }
  if (!is_variable_name(line->name)) {
    doctor_tell(DOCTOR_HINT,
                "%s: nothing reads a variable of the name %s: take out what is too much", where,
                name);
    return;
  }
  const struct nccl_conf_setting counts = nccl_conf_find(line->name);
  if (!line->counts) {
    doctor_tell(DOCTOR_HINT, "%s: %s does not count, as it is set in %s", where, line->name,
                nccl_conf_where(counts.file, counts.line, other));
  } else if (strncmp(line->name, "LD_", 3) == 0) {
    doctor_tell(DOCTOR_HINT, "%s: %s comes too late for the loader", where, line->name);
  } else {
    doctor_tell(DOCTOR_HINT, "%s: %s=%s%s", where, line->name,
                is_secret(line->name) ? "..." : quote(line->value, value),
                oddity(line->value, odd));
  }
}

static void tell_unreadable(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) {
    return;
  }
  if (access(path, R_OK) != 0) {
    doctor_tell(DOCTOR_HINT, "%s cannot be read by this user, so NCCL reads nothing of it", path);
  } else if (S_ISDIR(status.st_mode)) {
    doctor_tell(DOCTOR_HINT, "%s is a directory, so NCCL reads nothing of it", path);
  }
}

static void tell_files(void) {
  char own[PATH_MAX];
  int release = nccl_version_installed();
  tell_variable("NCCL_CONF_FILE",
                release == 0 ? "is read in the place of ~/.nccl.conf, but not before NCCL 2.23.4"
                : release < 22304 ? "is not read by this release of NCCL, but by 2.23.4 and later"
                                  : "is read in the place of ~/.nccl.conf");
  if (nccl_conf_user_file(NULL, nccl_version_installed, own)) {
    tell_unreadable(own);
  }
  tell_unreadable(NCCL_CONF_SYSTEM_FILE);
  for (size_t i = 0; i < nccl_conf_line_count(); i++) {
    tell_line(nccl_conf_line(i));
  }
}

void conf_tell(void) {
  static const struct {
    const char *name, *meaning;
  } variables[] = {
    { "NCCL_SOCKET_IFNAME", "selects interfaces" },
    { "NCCL_SOCKET_FAMILY", "chooses IPv4 or IPv6" },
    { "NCCL_COMM_ID", "its subnet selects the interface, unless NCCL_SOCKET_IFNAME does" },
    { "NCCL_NET_MERGE_LEVEL", "controls which NICs NCCL merges into one device" },
    { "NCCL_NET_FORCE_MERGE", "controls which NICs NCCL merges into one device" },
    { "NCCL_IB_DISABLE", "unless 0, stratus does not use RDMA either" },
    { "NCCL_IB_HCA", "selects HCAs, and with them the NICs" },
    { "NCCL_DEBUG", "INFO shows a line when stratus is loaded" },
    { "NCCL_DEBUG_SUBSYS", "must include INIT or NET to show the messages of stratus" },
  };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    tell_variable(variables[i].name, variables[i].meaning);
  }
  tell_files();
}
