/* SPDX-License-Identifier: Apache-2.0 */
/* static_calls: what our copies of hwloc and jansson find outside of themselves in the place of the
 * C library's (the Makefile's STATIC_RENAMED) and of udev. No variable reaches hwloc, so none
 * changes what it sees or crashes it; it looks for no plugin, which would bring CUDA, OpenCL or an
 * X server into the process; and there is no udev, whether its library is installed or not: it
 * knows of disks alone.
 *
 * Owns: nothing.  Threads: any.  Blocks: never.  Fails: cannot. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct udev;
struct udev_device;

extern FILE *static_stdin, *static_stderr, *static_stdout;
extern char *static_program_invocation_name;
char *static_getenv(const char *name);
struct udev *udev_new(void);
struct udev *udev_unref(struct udev *udev);
struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
                                                           const char *name);
struct udev_device *udev_device_unref(struct udev_device *device);
const char *udev_device_get_property_value(struct udev_device *device, const char *key);

FILE *static_stdin, *static_stderr, *static_stdout;
char *static_program_invocation_name = (char[]){ "" };

__attribute__((constructor)) static void set_streams(void) {
  static_stdin = stdin;
  static_stderr = stderr;
  static_stdout = stdout;
}

char *static_getenv(const char *name) {
  static struct {
    const char *name;
    char value[8];
  } answers[] = {
    { "HWLOC_PLUGINS_PATH", "" },
    { "HWLOC_HIDE_ERRORS", "2" },
    { "HWLOC_COMPONENTS", "-x86" }, /* it would move this thread over all CPUs */
  };
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    if (strcmp(name, answers[i].name) == 0) {
      return answers[i].value;
    }
  }
  return NULL;
}

struct udev *udev_new(void) {
  return NULL;
}

struct udev *udev_unref(struct udev *udev) {
  return udev;
}

struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
                                                           const char *name) {
  (void)udev;
  (void)subsystem;
  (void)name;
  return NULL;
}

struct udev_device *udev_device_unref(struct udev_device *device) {
  return device;
}

const char *udev_device_get_property_value(struct udev_device *device, const char *key) {
  (void)device;
  (void)key;
  return NULL;
}
