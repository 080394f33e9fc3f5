/* SPDX-License-Identifier: Apache-2.0 */
/* choice: which plugins NCCL will load in a job, and what its configuration files have to do with
 * it; for stratus-net doctor.
 * Owns: nothing.  Threads: the main thread, after nccl_conf_apply.
 * Blocks: as dlopen does.  Fails: cannot. */
#ifndef NET_PLUGIN_TOOLS_CHOICE_H
#define NET_PLUGIN_TOOLS_CHOICE_H

enum choice_finding { CHOICE_GOOD, CHOICE_HINT, CHOICE_BAD };
typedef void choice_tell_fn(enum choice_finding finding, const char *text);

/* For this release of NCCL; 0: not known. */
void choice_check_net(int release, choice_tell_fn *tell);
void choice_check_tuner(int release, choice_tell_fn *tell);

/* Each line of the configuration files: what it sets, or why it does nothing. */
void choice_tell_files(choice_tell_fn *tell);

/* `meaning` of a variable, if it is set, with its value and place. */
void choice_tell_variable(const char *name, const char *meaning, choice_tell_fn *tell);

#endif
