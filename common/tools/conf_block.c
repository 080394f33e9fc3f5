/* SPDX-License-Identifier: Apache-2.0 */
/* See conf_block.h. */
#include "common/tools/conf_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/plugin_name.h"
#include "common/random.h"
#include "common/tools/limits.h"

#define MARK_BEGIN "# >>> stratus-env"
#define MARK_BEGIN_REST " --write-conf; stratus-env --remove-conf takes these lines back"
#define MARK_NEW_FILE " and this file"
#define MARK_END "# <<< stratus-env"

enum { FILE_BYTES_MAX = 1 << 20 }; /* a file of settings has a few hundred bytes */
enum { BESIDE_MAX = NAME_MAX + 16 };

/* ---- reading ---- */

static const char *what_to_do(int error) {
  switch (error) {
  case EISDIR:
    return "; name a file (a container's bind mount makes a directory where the file is absent)";
  case EBUSY:
    return ": the file is mounted here, as into a container; change it where it was mounted from, "
           "or name another FILE";
  case EROFS:
    return "; change it where it was mounted from, or name another FILE";
  case ENOENT:
    return ": its directory, or that of what it leads to, is not there; make it first";
  default:
    return "";
  }
}

static int fail(char why_not[CONF_BLOCK_WHY_MAX], const char *path, int error) {
  snprintf(why_not, CONF_BLOCK_WHY_MAX, "%s: %s%s", path, strerror(error), what_to_do(error));
  return -error;
}

static int fail_text(char why_not[CONF_BLOCK_WHY_MAX], const char *path, const char *text) {
  snprintf(why_not, CONF_BLOCK_WHY_MAX, "%s: %s", path, text);
  return -EINVAL;
}

/* The whole file and a final '\0'; the caller frees it. Takes the descriptor over; negative: errno
 * says why there is none. An absent file is NULL. */
static int read_all(int fd, const char *path, char **text, char why_not[CONF_BLOCK_WHY_MAX]) {
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
  int error = !bytes ? ENOMEM : ferror(file) ? errno : 0;
  fclose(file);
  if (error) {
    free(bytes);
    return fail(why_not, path, error);
  }
  bytes[length] = '\0';
  if (length == FILE_BYTES_MAX || strlen(bytes) < length) {
    free(bytes);
    return fail_text(why_not, path,
                     length == FILE_BYTES_MAX ? "it has a MiB or more, as no file of settings has"
                                              : "it has a byte 0, so it is no text");
  }
  *text = bytes;
  return 0;
}

/* ---- lines ---- */

/* A file in two parts: what is not ours, and what is said of our block. */
struct parts {
  char *others; /* the caller frees it */
  size_t length;
  bool has_block, is_new_file; /* and the file was made for it */
  unsigned kept_lines;         /* of between the marks */
};

static bool starts_with(const char *line, size_t length, const char *with) {
  return length >= strlen(with) && strncmp(line, with, strlen(with)) == 0;
}

/* As written by any release of stratus-env; an editor may have put carriage returns. */
static bool is_our_line(const char *line, size_t length) {
  char name[NCCL_CONF_VALUE_MAX], value[NCCL_CONF_VALUE_MAX];
  if (!nccl_conf_split(line, length, false, name, value)) {
    return false;
  }
  return (strcmp(name, "NCCL_NET_PLUGIN") == 0 && !strchr(value, ',') &&
          plugin_name_is_stratus(PLUGIN_KIND_NET, value, 0)) ||
         (strcmp(name, "NCCL_TUNER_PLUGIN") == 0 &&
          plugin_name_is_stratus(PLUGIN_KIND_TUNER, value, 0)) ||
         (strcmp(name, "NCCL_NET_PLUGIN_REF_COUNT") == 0 && strcmp(value, "1") == 0);
}

static int fail_mark(char why_not[CONF_BLOCK_WHY_MAX], const char *path, unsigned number,
                     const char *missing) {
  snprintf(why_not, CONF_BLOCK_WHY_MAX,
           "%s, line %u: of the two marks of stratus-env one is missing: there is no line \"%s\" "
           "that belongs to this one; write it, or take the lines out by hand",
           path, number, missing);
  return -EINVAL;
}

/* `number` counts from 1; *open is the line with the beginning of a block, or 0. */
static int take_line(struct parts *parts, const char *line, size_t length, unsigned number,
                     unsigned *open, const char *path, char why_not[CONF_BLOCK_WHY_MAX]) {
  bool is_begin = starts_with(line, length, MARK_BEGIN);
  bool is_end = starts_with(line, length, MARK_END);
  if ((is_begin && *open) || (is_end && !*open)) {
    return fail_mark(why_not, path, is_begin ? *open : number, is_begin ? MARK_END : MARK_BEGIN);
  }
  if (is_begin) {
    parts->has_block = true;
    parts->is_new_file = memmem(line, length, MARK_NEW_FILE, strlen(MARK_NEW_FILE)) != NULL;
    *open = number;
  } else if (is_end) {
    *open = 0;
  } else if (!*open || !is_our_line(line, strcspn(line, "\n"))) {
    parts->kept_lines += *open != 0;
    memcpy(parts->others + parts->length, line, length);
    parts->length += length;
  }
  return 0;
}

static int split(const char *path, const char *text, struct parts *parts,
                 char why_not[CONF_BLOCK_WHY_MAX]) {
  *parts = (struct parts){ .others = malloc(strlen(text) + 1) };
  unsigned open = 0, number = 1;
  int error = parts->others ? 0 : fail(why_not, path, ENOMEM);
  for (const char *line = text; !error && *line; number++) {
    size_t length = strcspn(line, "\n");
    length += line[length] == '\n';
    error = take_line(parts, line, length, number, &open, path, why_not);
    line += length;
  }
  if (!error && open) {
    error = fail_mark(why_not, path, open, MARK_END);
  }
  if (!error) {
    parts->others[parts->length] = '\0';
  }
  return error;
}

bool conf_block_read_others(const char *path, const char *name, char value[NCCL_CONF_VALUE_MAX],
                            unsigned *line) {
  char *text, why_not[CONF_BLOCK_WHY_MAX];
  if (read_all(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), path, &text, why_not) != 0 || !text) {
    return false;
  }
  bool is_found = false, is_inside = false;
  unsigned number = 1;
  for (const char *each = text; *each && !is_found; number++) {
    char found[NCCL_CONF_VALUE_MAX];
    size_t length = strcspn(each, "\n");
    is_inside = starts_with(each, length, MARK_BEGIN) ||
                (is_inside && !starts_with(each, length, MARK_END));
    is_found = nccl_conf_split(each, length, true, found, value) && strcmp(found, name) == 0 &&
               !(is_inside && is_our_line(each, length));
    *line = number;
    each += length + (each[length] == '\n');
  }
  free(text);
  return is_found;
}

/* ---- where a file really is ----
 *
 * The way there is walked one name at a time, from a directory that is held open: what is done
 * there by descriptor stays in that directory, whatever becomes of the path meanwhile. Root follows
 * no symbolic link of another user, so that nobody else chooses which file root writes; the file's
 * own directory may be anybody's. */

struct place {
  int directory;
  char name[NAME_MAX + 1]; /* no link, when it was looked at; it need not exist */
};

#define LINKS_MAX 40 /* as the kernel follows (path_resolution(7)) */

/* What is still to be walked from the directory. */
struct walk {
  struct place *place;
  char left[2 * PATH_MAX];
  unsigned links;
};

static void enter(struct walk *walk, int directory) {
  close(walk->place->directory);
  walk->place->directory = directory;
}

/* Takes the next name; false: there was none. */
static bool take_name(struct walk *walk, char name[NAME_MAX + 1], int *error) {
  char *begin = walk->left + strspn(walk->left, "/");
  size_t length = strcspn(begin, "/");
  *error = length > NAME_MAX ? -ENAMETOOLONG : 0;
  if (length == 0 || *error) {
    return false;
  }
  memcpy(name, begin, length);
  name[length] = '\0';
  memmove(walk->left, begin + length, strlen(begin + length) + 1);
  return true;
}

static int start_at_root(struct walk *walk) {
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    return -errno;
  }
  enter(walk, root);
  return 0;
}

/* Puts what the link holds before the rest of the way. */
static int follow(struct walk *walk, int link, const struct stat *status) {
  char target[PATH_MAX], left[2 * PATH_MAX];
  if (geteuid() == 0 && status->st_uid != 0) {
    return -EPERM;
  }
  if (++walk->links > LINKS_MAX) {
    return -ELOOP;
  }
  ssize_t length = readlinkat(link, "", target, sizeof target - 1);
  if (length < 0) {
    return -errno;
  }
  target[length] = '\0';
  int bytes = snprintf(left, sizeof left, "%s%s", target, walk->left);
  if (bytes < 0 || (size_t)bytes >= sizeof left) {
    return -ENAMETOOLONG;
  }
  memcpy(walk->left, left, (size_t)bytes + 1);
  return target[0] == '/' ? start_at_root(walk) : 0;
}

/* One name further. 1: it is the last one, and no link. */
static int step(struct walk *walk) {
  struct stat status;
  char *name = walk->place->name;
  int error;
  if (!take_name(walk, name, &error)) {
    return error ? error : -EISDIR;
  }
  bool is_last = walk->left[0] == '\0';
  int there = openat(walk->place->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (there < 0) {
    return is_last && errno == ENOENT ? 1 : -errno;
  }
  error = fstat(there, &status) == 0 ? 0 : -errno;
  if (!error && S_ISLNK(status.st_mode)) {
    error = follow(walk, there, &status);
  } else if (!error && S_ISDIR(status.st_mode)) {
    enter(walk, there);
    return 0;
  } else if (!error) {
    error = is_last ? 1 : -ENOTDIR;
  }
  close(there);
  return error;
}

static void place_close(struct place *place) {
  if (place->directory >= 0) {
    close(place->directory);
    place->directory = -1;
  }
}

/* Negative errno; -EPERM: a link of another user. */
static int place_open(const char *path, struct place *place) {
  struct walk walk = { .place = place };
  int bytes = snprintf(walk.left, sizeof walk.left, "%s", path);
  if (bytes < 0 || (size_t)bytes >= sizeof walk.left) {
    return -ENAMETOOLONG;
  }
  place->directory = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int error = place->directory < 0 ? -errno : 0;
  while (error == 0) {
    error = step(&walk);
  }
  if (error < 0) {
    place_close(place);
    return error;
  }
  return 0;
}

/* ---- writing ---- */

/* A file that is to be changed. All that happens to it happens in the directory that is held. */
struct target {
  const char *path; /* for messages */
  struct place place;
  bool is_there;
  struct stat status; /* of the file whose text this is */
  char *text;         /* NULL: there is no file */
};

static int target_read(struct target *target, char why_not[CONF_BLOCK_WHY_MAX]) {
  int fd = openat(target->place.directory, target->place.name,
                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  target->is_there = fd >= 0;
  if (fd >= 0 && fstat(fd, &target->status) == 0 && !S_ISREG(target->status.st_mode)) {
    close(fd);
    return fail_text(why_not, target->path, "it is not a regular file; name one");
  }
  return read_all(fd, target->path, &target->text, why_not);
}

static int target_open(const char *path, struct target *target, char why_not[CONF_BLOCK_WHY_MAX]) {
  *target = (struct target){ .path = path };
  int error = place_open(path, &target->place);
  if (error == -EPERM) {
    snprintf(why_not, CONF_BLOCK_WHY_MAX,
             "%s: a symbolic link of another user leads there, and root follows none; name the "
             "file itself, or do it as that user",
             path);
    return error;
  }
  return error ? fail(why_not, path, -error) : target_read(target, why_not);
}

static void target_close(struct target *target) {
  place_close(&target->place);
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
  for (int i = 0; fd < 0 && i < CONF_BLOCK_BESIDE_TRIES && (i == 0 || errno == EEXIST); i++) {
    uint32_t random;
    if (random_secret(&random, sizeof random) != 0) {
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
                   char why_not[CONF_BLOCK_WHY_MAX]) {
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

static char *format_lines(const struct conf_block_line *lines, size_t count, bool is_new_file) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) {
    return NULL;
  }
  fprintf(out, MARK_BEGIN MARK_BEGIN_REST "%s\n", is_new_file ? MARK_NEW_FILE : "");
  for (size_t i = 0; i < count; i++) {
    fprintf(out, "%s=%s\n", lines[i].name, lines[i].value);
  }
  fputs(MARK_END "\n", out);
  fclose(out);
  return text;
}

/* The file and its parts. Both are closed by end. */
static int begin(const char *path, struct target *target, struct parts *parts,
                 char why_not[CONF_BLOCK_WHY_MAX]) {
  *parts = (struct parts){ 0 };
  int error = target_open(path, target, why_not);
  return !error && target->text ? split(path, target->text, parts, why_not) : error;
}

static void end(struct target *target, struct parts *parts) {
  target_close(target);
  free(parts->others);
}

int conf_block_write(const char *path, const struct conf_block_line *lines, size_t count,
                     char why_not[CONF_BLOCK_WHY_MAX]) {
  struct target target;
  struct parts parts;
  int error = begin(path, &target, &parts, why_not);
  if (!error) {
    char *added = format_lines(lines, count, !target.text || parts.is_new_file);
    const char *both[] = { added ? added : "", parts.others ? parts.others : "" };
    error = added ? replace(&target, both, 2, why_not) : fail(why_not, path, ENOMEM);
    free(added);
  }
  end(&target, &parts);
  return error;
}

int conf_block_remove(const char *path, struct conf_block_removed *removed,
                      char why_not[CONF_BLOCK_WHY_MAX]) {
  struct target target;
  struct parts parts;
  int error = begin(path, &target, &parts, why_not);
  *removed = (struct conf_block_removed){ parts.has_block, parts.kept_lines };
  if (!error && parts.has_block) {
    const char *others[] = { parts.others };
    if (!parts.is_new_file || parts.length > 0) {
      error = replace(&target, others, 1, why_not);
    } else if (unlinkat(target.place.directory, target.place.name, 0) != 0) {
      error = fail(why_not, path, errno); /* a symbolic link to it stays, as in replace */
    }
  }
  end(&target, &parts);
  return error;
}
