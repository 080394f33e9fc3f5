/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs: reads of sysfs and procfs below a root, which is "/" or a captured tree in tests.
 * Owns: nothing.  Threads: any.
 * Blocks: as the kernel's files do.  Fails: -ENOENT and other errors of open and read, -EINVAL for
 * an invalid number, -ENAMETOOLONG, -EXDEV for a link that leaves the root.
 *
 * Paths are printf formats below the root, without a leading slash:
 *   sysfs_read_int(root, &mbps, "sys/class/net/%s/speed", name) */
#ifndef COMMON_SYSFS_H
#define COMMON_SYSFS_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The root of this process: "/". Tests have others. */
extern const char *sysfs_process_root;

enum {
  SYSFS_PATH_MAX = 4096,
  SYSFS_TEXT_MAX = 4096, /* what one sysfs attribute can hold */
};

/* The whole file without surrounding white space, truncated. Returns the length. */
int sysfs_read_text(const char *root, char *text, size_t text_bytes, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* One decimal number. */
int sysfs_read_int(const char *root, int64_t *value, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

bool sysfs_exists(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/* The path after resolving links, absolute, without the root:
 * "/sys/devices/pci0000:00/0000:00:05.0". Returns the length. */
int sysfs_resolve(const char *root, char *resolved, size_t resolved_bytes, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* The name of the driver of a device, whose path is given: "mlx5_core"; a longer one is cut.
 * Returns the length; on errors, as when it has none, the name is empty. */
int sysfs_read_driver(const char *root, char *driver, size_t driver_bytes, const char *device, ...)
    __attribute__((format(printf, 4, 5)));

/* Paths, with the root, that match a pattern of the shell's, as in "sys/class/net/%s/lower_*",
 * until globfree. How many; none where the directory cannot be read. */
size_t sysfs_find(const char *root, glob_t *found, const char *pattern, ...)
    __attribute__((format(printf, 3, 4)));
/* Of such a path what comes behind its last slash. */
const char *sysfs_name(const char *path);

#endif
