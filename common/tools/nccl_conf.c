/* SPDX-License-Identifier: Apache-2.0 */
/* See nccl_conf.h. What is added stands at the start: there it counts before other lines, and a
 * last line without its newline stays as it is. */
#include "common/tools/nccl_conf.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tools/conf_place.h"

#define MARK_BEGIN                                                                                 \
  "# >>> stratus-env --write-conf; stratus-env --remove-conf takes these lines back"
#define MARK_NEW_FILE " and this file"
#define MARK_END "# <<< stratus-env\n"

enum { FILE_BYTES_MAX = 1 << 20 }; /* a file of settings has a few hundred bytes */
enum { BESIDE_MAX = NAME_MAX + 16, BESIDE_TRIES = 100 };

/* ---- reading ---- */

static int fail(char why_not[NCCL_CONF_WHY_MAX], const char *path, int error) {
  snprintf(why_not, NCCL_CONF_WHY_MAX, "%s: %s", path, strerror(error));
  return -error;
}

/* The whole file and a final '\0'; the caller frees it. Takes the descriptor over; negative: errno
 * says why there is none. An absent file is NULL. */
static int read_all(int fd, const char *path, char **text, char why_not[NCCL_CONF_WHY_MAX]) {
  *text = NULL;
  FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (!file) {
    int error = errno;
    if (fd >= 0) {
      close(fd);
    }
    return fd < 0 && error == ENOENT ? 0 : fail(why_not, path, error);
  }
  char *bytes = malloc(FILE_BYTES_MAX + 1);
  size_t length = bytes ? fread(bytes, 1, FILE_BYTES_MAX, file) : 0;
  int error = !bytes ? ENOMEM : ferror(file) ? EIO : length == FILE_BYTES_MAX ? EFBIG : 0;
  fclose(file);
  if (!error && memchr(bytes, '\0', length)) {
    error = EILSEQ;
  }
  if (error) {
    free(bytes);
    return fail(why_not, path, error);
  }
  bytes[length] = '\0';
  *text = bytes;
  return 0;
}

/* What nccl_conf_write added: *begin and *end of it, both NULL if there is nothing. */
static int find_marks(const char *path, char *text, char **begin, char **end,
                      char why_not[NCCL_CONF_WHY_MAX]) {
  *begin = strstr(text, MARK_BEGIN);
  *end = strstr(text, MARK_END);
  if (!*begin && !*end) {
    return 0;
  }
  if (!*begin || !*end || *end < *begin) {
    snprintf(why_not, NCCL_CONF_WHY_MAX,
             "%s: of the two marks of stratus-env one is missing: \"%s\" and \"%.*s\"; repair or "
             "remove them by hand",
             path, MARK_BEGIN, (int)strlen(MARK_END) - 1, MARK_END);
    return -EINVAL;
  }
  *end += strlen(MARK_END);
  return 0;
}

/* As NCCL reads lines: blanks are part of names and values. */
static bool find_value(const char *text, const char *name, char value[NCCL_CONF_VALUE_MAX]) {
  size_t name_length = strlen(name);
  for (const char *line = text; *line;) {
    size_t length = strcspn(line, "\n");
    if (length > name_length && strncmp(line, name, name_length) == 0 && line[name_length] == '=') {
      size_t bytes = length - name_length - 1;
      if (bytes > 0 && line[length - 1] == '\r') {
        bytes--;
      }
      snprintf(value, NCCL_CONF_VALUE_MAX, "%.*s", (int)bytes, line + name_length + 1);
      return true;
    }
    line += length + (line[length] == '\n');
  }
  return false;
}

bool nccl_conf_read(const char *path, const char *name, char value[NCCL_CONF_VALUE_MAX]) {
  char *text, *begin, *end, why_not[NCCL_CONF_WHY_MAX];
  if (read_all(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), path, &text, why_not) != 0 || !text) {
    return false;
  }
  if (find_marks(path, text, &begin, &end, why_not) == 0 && begin) {
    memmove(begin, end, strlen(end) + 1);
  }
  bool is_found = find_value(text, name, value);
  free(text);
  return is_found;
}

bool nccl_conf_user_file(char path[PATH_MAX]) {
  const char *file = getenv("NCCL_CONF_FILE");
  const struct passwd *user = getpwuid(getuid()); /* NCCL does not read HOME (param.cc) */
  if (file && *file) {
    snprintf(path, PATH_MAX, "%s", file);
  } else if (user) {
    snprintf(path, PATH_MAX, "%s/.nccl.conf", user->pw_dir);
  } else {
    return false;
  }
  return true;
}

bool nccl_conf_find(const char *name, char value[NCCL_CONF_VALUE_MAX], char where[PATH_MAX]) {
  if (nccl_conf_user_file(where) && nccl_conf_read(where, name, value)) {
    return true;
  }
  snprintf(where, PATH_MAX, "/etc/nccl.conf");
  return nccl_conf_read(where, name, value);
}

/* ---- writing ---- */

/* A file that is to be changed. All that happens to it happens in the directory that is held. */
struct target {
  const char *path; /* for messages */
  struct conf_place place;
  bool is_there;
  struct stat status; /* of the file whose text this is */
  char *text;         /* NULL: there is no file */
};

static int target_read(struct target *target, char why_not[NCCL_CONF_WHY_MAX]) {
  int fd = openat(target->place.directory, target->place.name,
                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  target->is_there = fd >= 0;
  if (fd >= 0 && fstat(fd, &target->status) == 0 && !S_ISREG(target->status.st_mode)) {
    close(fd);
    snprintf(why_not, NCCL_CONF_WHY_MAX, "%s: it is not a regular file", target->path);
    return -EINVAL;
  }
  return read_all(fd, target->path, &target->text, why_not);
}

static int target_open(const char *path, struct target *target, char why_not[NCCL_CONF_WHY_MAX]) {
  *target = (struct target){ .path = path };
  int error = conf_place_open(path, &target->place);
  if (error == -EPERM) {
    snprintf(why_not, NCCL_CONF_WHY_MAX,
             "%s: a symbolic link of another user leads there, and root follows none; name the "
             "file itself, or do it as that user",
             path);
    return error;
  }
  return error ? fail(why_not, path, -error) : target_read(target, why_not);
}

static void target_close(struct target *target) {
  conf_place_close(&target->place);
  free(target->text);
}

/* As the old file where there was one, else readable by all. */
static bool copy_rights(int fd, const struct target *target) {
  const struct stat *old = &target->status;
  if (!target->is_there) {
    return fchmod(fd, 0644) == 0;
  }
  /* The owner first: chown clears bits of the mode. */
  struct stat ours;
  bool is_theirs =
      fstat(fd, &ours) == 0 && ours.st_uid == old->st_uid && ours.st_gid == old->st_gid;
  return (is_theirs || fchown(fd, old->st_uid, old->st_gid) == 0) &&
         fchmod(fd, old->st_mode & 0777) == 0;
}

static bool write_all(FILE *file, const char *const *parts, int part_count) {
  for (int i = 0; i < part_count; i++) {
    if (fputs(parts[i], file) == EOF) {
      return false;
    }
  }
  return fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* A new file of a name of its own, beside the target. */
static int create_beside(const struct target *target, char name[BESIDE_MAX]) {
  int fd = -1;
  for (int i = 0; fd < 0 && i < BESIDE_TRIES && (i == 0 || errno == EEXIST); i++) {
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
      return -1;
    }
    snprintf(name, BESIDE_MAX, "%s.%08x", target->place.name, random);
    fd = openat(target->place.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                0600);
  }
  return fd;
}

/* Through a file beside it; of a symbolic link, beside what it leads to. */
static int replace(const struct target *target, const char *const *parts, int part_count,
                   char why_not[NCCL_CONF_WHY_MAX]) {
  char beside[BESIDE_MAX];
  const char *path = target->path, *name = target->place.name;
  int directory = target->place.directory, fd = create_beside(target, beside);
  if (fd < 0) {
    return fail(why_not, path, errno);
  }
  FILE *file = fdopen(fd, "w");
  bool is_good = file && copy_rights(fd, target) && write_all(file, parts, part_count) &&
                 renameat(directory, beside, directory, name) == 0;
  int error = is_good ? 0 : errno;
  if (file) {
    fclose(file);
  } else {
    close(fd);
  }
  if (error) {
    unlinkat(directory, beside, 0);
    return fail(why_not, path, error);
  }
  return 0;
}

static char *format_lines(const struct nccl_conf_line *lines, size_t count, bool is_new_file) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) {
    return NULL;
  }
  fprintf(out, "%s%s\n", MARK_BEGIN, is_new_file ? MARK_NEW_FILE : "");
  for (size_t i = 0; i < count; i++) {
    fprintf(out, "%s=%s\n", lines[i].name, lines[i].value);
  }
  fputs(MARK_END, out);
  fclose(out);
  return text;
}

static bool is_new_file_mark(const char *begin) {
  return strncmp(begin + strlen(MARK_BEGIN), MARK_NEW_FILE, strlen(MARK_NEW_FILE)) == 0;
}

int nccl_conf_write(const char *path, const struct nccl_conf_line *lines, size_t count,
                    char why_not[NCCL_CONF_WHY_MAX]) {
  struct target target;
  char *begin = NULL, *end = NULL;
  int rc = target_open(path, &target, why_not);
  const char *text = target.text;
  if (rc == 0 && text) {
    rc = find_marks(path, target.text, &begin, &end, why_not);
  }
  if (rc == 0) {
    char *added = format_lines(lines, count, text ? begin && is_new_file_mark(begin) : true);
    if (begin) {
      *begin = '\0';
    }
    const char *parts[] = { begin ? text : "", added ? added : "", begin ? end : text ? text : "" };
    rc = added ? replace(&target, parts, 3, why_not) : fail(why_not, path, ENOMEM);
    free(added);
  }
  target_close(&target);
  return rc;
}

int nccl_conf_remove(const char *path, bool *is_changed, char why_not[NCCL_CONF_WHY_MAX]) {
  struct target target;
  char *begin = NULL, *end = NULL;
  int rc = target_open(path, &target, why_not);
  const char *text = target.text;
  if (rc == 0 && text) {
    rc = find_marks(path, target.text, &begin, &end, why_not);
  }
  *is_changed = rc == 0 && begin;
  if (*is_changed) {
    bool is_ours = is_new_file_mark(begin);
    *begin = '\0';
    if (is_ours && !*text && !*end) { /* a symbolic link stays, as in replace */
      bool is_gone = unlinkat(target.place.directory, target.place.name, 0) == 0;
      rc = is_gone ? 0 : fail(why_not, path, errno);
    } else {
      rc = replace(&target, (const char *const[]){ text, end }, 2, why_not);
    }
  }
  target_close(&target);
  return rc;
}
