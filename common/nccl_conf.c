/* SPDX-License-Identifier: Apache-2.0 */
/* See nccl_conf.h. */
#include "common/nccl_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KNOWS_CONF_FILE = 22304, READS_HOME = 23003 };

static struct {
  struct nccl_conf_line *lines;
  size_t count;
  char files[2][PATH_MAX]; /* the user's, the system's */
} conf;

/* ---- lines ---- */

static size_t copy(char to[NCCL_CONF_VALUE_MAX], const char *from, size_t length) {
  size_t bytes = length < NCCL_CONF_VALUE_MAX ? length : NCCL_CONF_VALUE_MAX - 1;
  memcpy(to, from, bytes);
  to[bytes] = '\0';
  return bytes;
}

/* One line, without its newline. False: it sets nothing. */
static bool split(const char *line, size_t length, bool keeps_return,
                  char name[NCCL_CONF_VALUE_MAX], char value[NCCL_CONF_VALUE_MAX]) {
  length = strnlen(line, length);
  if (!keeps_return && length > 0 && line[length - 1] == '\r') {
    length--;
  }
  const char *equals = memchr(line, '=', length);
  if (!equals || line[0] == '#') {
    return false;
  }
  copy(name, line, (size_t)(equals - line));
  copy(value, equals + 1, length - (size_t)(equals + 1 - line));
  return true;
}

static bool is_blank(const char *line, size_t length) {
  return line[0] == '#' || strspn(line, " \t\r") >= strnlen(line, length);
}

static void forget_lines(void) {
  for (size_t i = 0; i < conf.count; i++) {
    free(conf.lines[i].name);
    free(conf.lines[i].value);
  }
  free(conf.lines);
  conf.lines = NULL;
  conf.count = 0;
}

static const struct nccl_conf_line *line_that_counts(const char *name) {
  for (size_t i = 0; i < conf.count; i++) {
    if (conf.lines[i].counts && strcmp(conf.lines[i].name, name) == 0) {
      return &conf.lines[i];
    }
  }
  return NULL;
}

/* Room for one more, in an array that has a power of two places. */
static int make_room(void) {
  if ((conf.count & (conf.count - 1)) == 0) {
    size_t room = conf.count ? 2 * conf.count : 1;
    struct nccl_conf_line *lines = reallocarray(conf.lines, room, sizeof *lines);
    if (!lines) {
      return -ENOMEM;
    }
    conf.lines = lines;
  }
  return 0;
}

static int take_line(const char *line, size_t length, bool keeps_return, const char *file,
                     unsigned number) {
  char name[NCCL_CONF_VALUE_MAX], value[NCCL_CONF_VALUE_MAX];
  if (is_blank(line, length)) {
    return 0;
  }
  if (make_room() < 0) {
    return -ENOMEM;
  }
  bool is_setting = split(line, length, keeps_return, name, value);
  if (!is_setting) {
    copy(name, line, strnlen(line, length));
  }
  struct nccl_conf_line *added = &conf.lines[conf.count++];
  *added = (struct nccl_conf_line){
    .name = strdup(name), .value = is_setting ? strdup(value) : NULL, .file = file, .number = number
  };
  if (!added->name || (is_setting && !added->value)) {
    return -ENOMEM;
  }
  /* setenv takes no empty name, and NCCL does not ask what it says. */
  added->counts = is_setting && name[0] && !getenv(name) && !line_that_counts(name);
  return 0;
}

/* ---- files ---- */

static bool is_there(const char *path) {
  return path && path[0] && access(path, F_OK) == 0;
}

/* Regular files only: what was read from a pipe would be missing in the job. */
static FILE *open_file(const char *path) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    FILE *file = fdopen(fd, "r");
    if (file) {
      return file;
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  return NULL;
}

static int read_file(const char *path, nccl_conf_release_fn *release) {
  FILE *file = open_file(path);
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  int error = 0;
  for (unsigned number = 1; file && !error && (length = getline(&line, &size, file)) >= 0;
       number++) {
    size_t bytes = (size_t)length - (line[length - 1] == '\n');
    line[bytes] = '\0';
    bool has_return = bytes > 0 && line[bytes - 1] == '\r'; /* a release may take it off */
    error = take_line(line, bytes, !has_return || release() < READS_HOME, path, number);
  }
  free(line);
  if (file) {
    fclose(file);
  }
  return error;
}

static struct nccl_conf_places real_places(void) {
  const struct passwd *user = getpwuid(getuid());
  return (struct nccl_conf_places){
    .named = getenv("NCCL_CONF_FILE"),
    .home = getenv("HOME"),
    .passwd_home = user ? user->pw_dir : NULL,
    .system_file = NCCL_CONF_SYSTEM_FILE,
  };
}

static bool is_same(const char *a, const char *b) {
  return a && b && strcmp(a, b) == 0;
}

bool nccl_conf_user_file(const struct nccl_conf_places *places, nccl_conf_release_fn *release,
                         char path[PATH_MAX]) {
  const struct nccl_conf_places real = real_places();
  places = places ? places : &real;
  if (places->named && places->named[0]) {
    int version = release();
    if (version == 0 || version >= KNOWS_CONF_FILE) {
      snprintf(path, PATH_MAX, "%s", places->named);
      return true;
    }
  }
  const char *home = places->passwd_home;
  if (!is_same(home, places->home) && release() >= READS_HOME) {
    home = places->home;
  }
  return home && snprintf(path, PATH_MAX, "%s/.nccl.conf", home) < PATH_MAX;
}

/* The release is not asked where no answer would matter. */
static bool has_user_file(const struct nccl_conf_places *places) {
  const char *homes[] = { places->home, places->passwd_home };
  for (int i = 0; i < 2; i++) {
    char path[PATH_MAX];
    if (homes[i] && snprintf(path, sizeof path, "%s/.nccl.conf", homes[i]) < PATH_MAX &&
        is_there(path)) {
      return true;
    }
  }
  return is_there(places->named);
}

int nccl_conf_load(const struct nccl_conf_places *places, nccl_conf_release_fn *release) {
  const struct nccl_conf_places real = real_places();
  places = places ? places : &real;
  forget_lines();
  int error = 0;
  if (has_user_file(places) && nccl_conf_user_file(places, release, conf.files[0])) {
    error = read_file(conf.files[0], release);
  }
  if (!error && places->system_file) {
    snprintf(conf.files[1], PATH_MAX, "%s", places->system_file);
    error = read_file(conf.files[1], release);
  }
  return error;
}

/* ---- the environment ---- */

static bool is_loaders(const char *name) {
  return strncmp(name, "LD_", 3) == 0;
}

int nccl_conf_apply(nccl_conf_release_fn *release) {
  int error = nccl_conf_load(NULL, release);
  for (size_t i = 0; !error && i < conf.count; i++) {
    const struct nccl_conf_line *line = &conf.lines[i];
    if (line->counts && !is_loaders(line->name) && setenv(line->name, line->value, 0) != 0) {
      error = -errno;
    }
  }
  return error;
}

void nccl_conf_withdraw(void) {
  for (size_t i = 0; i < conf.count; i++) {
    if (conf.lines[i].counts && !is_loaders(conf.lines[i].name)) {
      unsetenv(conf.lines[i].name);
    }
  }
}

size_t nccl_conf_line_count(void) {
  return conf.count;
}

const struct nccl_conf_line *nccl_conf_line(size_t index) {
  return &conf.lines[index];
}

struct nccl_conf_setting nccl_conf_find(const char *name) {
  const struct nccl_conf_line *line = line_that_counts(name);
  if (line) {
    return (struct nccl_conf_setting){ line->value, line->file, line->number };
  }
  return (struct nccl_conf_setting){ .value = getenv(name) };
}

/* ---- words ---- */

const char *nccl_conf_where(const char *file, unsigned line, char text[NCCL_CONF_WHERE_MAX]) {
  if (file) {
    snprintf(text, NCCL_CONF_WHERE_MAX, "%s, line %u", file, line);
  } else {
    snprintf(text, NCCL_CONF_WHERE_MAX, "the environment");
  }
  return text;
}

const char *nccl_conf_text(const char *name, const struct nccl_conf_setting *setting,
                           char text[NCCL_CONF_TEXT_MAX]) {
  char quoted[QUOTE_MAX], where[NCCL_CONF_WHERE_MAX];
  snprintf(text, NCCL_CONF_TEXT_MAX, "%s=%s is set in %s", name, quote(setting->value, quoted),
           nccl_conf_where(setting->file, setting->line, where));
  return text;
}

const char *nccl_conf_oddity(const char *value) {
  size_t length = strlen(value);
  char first = value[0], last = length > 0 ? value[length - 1] : '\0';
  return last == '\r'                    ? "the carriage return at its end"
         : first == ' ' || first == '\t' ? "the blank before it"
         : last == ' ' || last == '\t'   ? "the blank behind it"
         : length > 1 && first == last && (first == '"' || first == '\'') ? "the quotes around it"
         : strstr(value, " #") || strstr(value, "\t#")                    ? "the comment behind it"
                                                                          : NULL;
}
