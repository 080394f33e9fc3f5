/* SPDX-License-Identifier: Apache-2.0 */
/* library: the services that hosts draw theirs from: for each kind of host several, which differ by
 * the paths that their flows drew; each is measured once (service.h), and only if a host needs it.
 * Owns: a struct library, until library_free.  Threads: one.  Blocks: never.  Fails: as service.h.
 */
#ifndef TESTS_SCALE_LIBRARY_H
#define TESTS_SCALE_LIBRARY_H

#include "tests/scale/options.h"

/* Worse ones later: two hosts get along as the worse of them does. */
enum library_kind { LIBRARY_HEALTHY, LIBRARY_FAILED, LIBRARY_SLOW, LIBRARY_KINDS };

/* Which connections of a host are busy at a time: in a tree of two hosts each has one neighbour, to
 * which it sends up one tree and down the other. */
enum library_shape { LIBRARY_RING, LIBRARY_TREE, LIBRARY_TREE_OF_TWO, LIBRARY_SHAPES };

struct library {
  const struct options *options;
  struct service *services[LIBRARY_SHAPES]; /* [kind][variant] */
  bool is_measured[LIBRARY_SHAPES][LIBRARY_KINDS];
  uint64_t simulated_ns;
};

void library_init(struct library *library, const struct options *options);
void library_free(struct library *library);
unsigned library_size(const struct library *library); /* of services[] */
/* Of a tree of so many hosts. */
enum library_shape library_tree(unsigned hosts);
/* Draws each host's service, and measures what is missing. */
void library_draw(struct library *library, unsigned hosts, uint64_t seed, unsigned *host_services);

#endif
