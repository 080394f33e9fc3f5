/* SPDX-License-Identifier: Apache-2.0 */
/* protection: whether this side can protect its connections as the user wants it to.
 * Owns: nothing.  Threads: any.  Blocks: on the file of the job secret, if there is one.
 * Fails: -EACCES after a LOG_WARN that says what to do. */
#ifndef NET_PLUGIN_SETUP_PROTECTION_H
#define NET_PLUGIN_SETUP_PROTECTION_H

/* Before each listener and connector, and loads the job secret. An error means that something that
 * protects was asked for and is not there, because of a typo, a bad value, or a machine on which it
 * does not work: go no further, so that nothing weaker takes its place. NCCL hands the warning on
 * with its error, also where its log is silent. */
int protection_check(void);

#endif
