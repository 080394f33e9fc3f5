/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_check: the checks of stratus-net doctor, and how they tell what they find.
 * Owns: nothing.  Threads: the main thread, after nccl_conf_apply; nobody changes the environment.
 * Blocks: as dlopen, sysfs and files do; routing tables are asked.  Fails: cannot; what is wrong is
 * a finding, what cannot be read is skipped, a text that is too long is cut. */
#ifndef NET_PLUGIN_TOOLS_DOCTOR_CHECK_H
#define NET_PLUGIN_TOOLS_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "net_plugin/lane/tcp_socket.h"
#include "net_plugin/plugin/discovery.h"

enum doctor_finding { DOCTOR_GOOD, DOCTOR_HINT, DOCTOR_BAD };

/* Of doctor.c; tests have their own. */
enum { DOCTOR_TEXT_MAX = 2048 };
void doctor_tell(enum doctor_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* In what follows `root` is as in common/sysfs.h, and `release` as ncclGetVersion counts; 0: not
 * known. */

/* ---- choice: which plugins NCCL will load, and what its configuration files do ---- */

void choice_check_net(int release);
void choice_check_tuner(int release);
/* Each line of the configuration files: what it sets, or why it does nothing. */
void choice_tell_files(void);
/* `meaning` of a variable, if it is set, with its value and place. */
void choice_tell_variable(const char *name, const char *meaning);

/* ---- bypass: what NCCL sends without the net plugin, and what its own encryption covers ---- */

struct bypass_facts {
  int release;       /* 0: nothing is told */
  bool has_rdma;     /* NCCL finds devices for its own RDMA */
  bool is_encrypted; /* STRATUS_ENCRYPT=on */
};
/* Reads NCCL's variables. */
void bypass_check(const struct bypass_facts *facts);

/* ---- host: settings that slow flows down or misroute them ---- */

struct host_facts {
  const char *root;
  const struct device_table *devices;
  unsigned lanes; /* per connection over one NIC */
  struct tcp_options options;
  uint64_t open_files; /* ulimit -n */
};
/* From this process and its parameters. */
void host_facts_read(const struct device_table *devices, struct host_facts *facts);
/* A hint for each problem, with the command that corrects it. */
void host_check(const struct host_facts *facts);

/* ---- usefulness: whether NICs can carry a job between hosts, and better ones are left out ---- */

/* A hint for each condition, with its NICs and what to do. */
void usefulness_check(const struct discovery *found, const char *root);
/* 0: not known. */
unsigned usefulness_mtu(const char *root, const char *nic);

/* ---- topology_file: whether NCCL reads these files, and they are of this machine ---- */

void topology_file_check_system(const char *path, const char *root);
/* `devices`: how many NCCL has; 0: not known. */
void topology_file_check_graph(const char *path, int devices);

#endif
