/* SPDX-License-Identifier: Apache-2.0 */
/* tuner_bench: how long the plugin's functions take, through the newest interface.
 * Owns: nothing.  Threads: one.  Blocks: for a second.  Fails: as driver_open. */
#ifndef TESTS_ABI_TUNER_BENCH_H
#define TESTS_ABI_TUNER_BENCH_H

int tuner_bench_run(const char *plugin_path);

#endif
