/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor_check.h. Values are shown in quotes: what NCCL reads is not always what one sees in a
 * file.
 */
#include "net_plugin/tools/doctor_check.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/nccl_conf.h"
#include "common/nccl_version.h"
#include "common/plugin_file.h"

enum { ODDITY_MAX = 128 };
enum { HAS_DEFAULT_TUNER = 22105, EMPTY_IS_NONE = 22703 };

/* ---- plugins ---- */

struct wish {
  enum plugin_kind kind;
  const char *name; /* of the variable */
  struct nccl_conf_setting setting;
  char text[NCCL_CONF_TEXT_MAX]; /* NAME="value" is set in WHERE */
  int release;
};

static struct wish find_wish(enum plugin_kind kind, const char *name, int release) {
  struct wish wish = {
    .kind = kind, .name = name, .setting = nccl_conf_find(name), .release = release
  };
  if (wish.setting.value) {
    nccl_conf_text(name, &wish.setting, wish.text);
  }
  return wish;
}

/* True if a finding was told: the value is off, or odd, or of another release. */
static bool tell_without_loading(const struct wish *wish) {
  char reason[PLUGIN_NAME_TEXT_MAX];
  const char *value = wish->setting.value;
  if (strcasecmp(value, "none") == 0) {
    doctor_tell(DOCTOR_HINT, "%s: %s is off", wish->text,
                wish->kind == PLUGIN_KIND_NET ? "stratus" : "its tuner");
    return true;
  }
  if (plugin_name_why_not(wish->kind, value, wish->release, reason)) {
    doctor_tell(DOCTOR_BAD, "%s: %s", wish->text, reason);
    return true;
  }
  if (wish->kind == PLUGIN_KIND_NET && strchr(value, ',') &&
      plugin_name_is_stratus(wish->kind, value, wish->release)) {
    doctor_tell(DOCTOR_HINT, "%s: a list; the first that loads and has devices is used%s",
                wish->text, wish->release ? "" : ", and NCCL before 2.27.3 takes no list");
    return true;
  }
  return false;
}

static void check_nccl_net(void) {
  const struct nccl_conf_setting net = nccl_conf_find("NCCL_NET");
  char text[NCCL_CONF_TEXT_MAX];
  if (net.value && strcasecmp(net.value, "stratus") != 0) {
    doctor_tell(DOCTOR_BAD, "%s: it keeps NCCL from using stratus; unset it",
                nccl_conf_text("NCCL_NET", &net, text));
  }
}

/* What NCCL tries without a wish; NULL: nothing. */
static const char *default_file(const struct wish *wish) {
  const char *value = wish->setting.value;
  if (wish->kind == PLUGIN_KIND_NET) {
    return value && (wish->release == 0 || wish->release >= EMPTY_IS_NONE) ? NULL
                                                                           : "libnccl-net.so";
  }
  return wish->release == 0 || wish->release >= HAS_DEFAULT_TUNER ? "libnccl-tuner.so" : NULL;
}

/* True if a finding was told: NCCL loads stratus, or the value says that it does not. */
static bool tell_choice(const struct wish *wish, const char *what) {
  const char *value = wish->setting.value, *file = default_file(wish);
  bool is_set = value && *value;
  char tried[PLUGIN_FILE_MAX];
  if (is_set && tell_without_loading(wish)) {
    return true;
  }
  void *library = is_set ? plugin_file_open(wish->kind, value, wish->release, tried)
                  : file ? dlopen(file, RTLD_NOW | RTLD_LOCAL)
                         : NULL;
  if (!library) {
    return false;
  }
  int version;
  const char *const *table = plugin_file_table(wish->kind, library, &version);
  bool is_stratus = table && *table && strcmp(*table, "stratus") == 0;
  if (is_stratus) {
    doctor_tell(DOCTOR_GOOD, "NCCL will load %s (%s%s)", what, is_set ? "" : "as ",
                is_set ? wish->text : plugin_file_path(library));
  }
  dlclose(library);
  return is_stratus;
}

void choice_check_net(int release) {
  const struct wish wish = find_wish(PLUGIN_KIND_NET, "NCCL_NET_PLUGIN", release);
  const char *value = wish.setting.value;
  bool is_told = tell_choice(&wish, "it");
  if (!is_told && !value) {
    doctor_tell(DOCTOR_BAD, "NCCL will not load it: set NCCL_NET_PLUGIN=stratus");
  } else if (!is_told) {
    doctor_tell(DOCTOR_BAD, "%s: it does not lead to stratus%s", wish.text,
                strcmp(value, "stratus") ? "; set NCCL_NET_PLUGIN=stratus"
                                         : ", which cannot be loaded");
  }
  check_nccl_net();
}

void choice_check_tuner(int release) {
  const struct wish wish = find_wish(PLUGIN_KIND_TUNER, "NCCL_TUNER_PLUGIN", release);
  const char *value = wish.setting.value;
  if (tell_choice(&wish, "the tuner of stratus")) {
    return;
  }
  if (!value || !*value) {
    doctor_tell(DOCTOR_HINT,
                "NCCL will not load the tuner of stratus, which follows tuning profiles: set "
                "NCCL_TUNER_PLUGIN=" PLUGIN_TUNER);
  } else if (plugin_name_is_stratus(PLUGIN_KIND_TUNER, value, release)) {
    doctor_tell(DOCTOR_BAD, "%s: it cannot be loaded", wish.text);
  } else {
    doctor_tell(DOCTOR_HINT, "%s: the tuner of stratus is not used", wish.text);
  }
}

/* ---- variables and files ---- */

/* ": NCCL takes ... for a part of the value", or nothing. */
static const char *oddity(const char *value, char text[ODDITY_MAX]) {
  const char *odd = nccl_conf_oddity(value);
  text[0] = '\0';
  if (odd) {
    snprintf(text, ODDITY_MAX, ": NCCL takes %s for a part of the value", odd);
  }
  return text;
}

void choice_tell_variable(const char *name, const char *meaning) {
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

void choice_tell_files(void) {
  char own[PATH_MAX];
  int release = nccl_version_installed();
  choice_tell_variable(
      "NCCL_CONF_FILE",
      release == 0      ? "is read in the place of ~/.nccl.conf, but not before NCCL 2.23.4"
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
