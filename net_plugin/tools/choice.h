/* SPDX-License-Identifier: Apache-2.0 */
/* choice: which plugins NCCL will load in a job, and what its configuration files have to do with
 * it; for stratus-net doctor.
 * Owns: nothing.  Threads: the main thread, after nccl_conf_apply.
 * Blocks: as dlopen does.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_CHOICE_H
#define NET_PLUGIN_TOOLS_CHOICE_H

#include "net_plugin/tools/doctor_finding.h"

/* For this release of NCCL; 0: not known. */
void choice_check_net(int release, doctor_tell_fn *tell);
void choice_check_tuner(int release, doctor_tell_fn *tell);

/* Each line of the configuration files: what it sets, or why it does nothing. */
void choice_tell_files(doctor_tell_fn *tell);

/* `meaning` of a variable, if it is set, with its value and place. */
void choice_tell_variable(const char *name, const char *meaning, doctor_tell_fn *tell);

#endif
