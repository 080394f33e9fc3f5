/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_xml: NCCL_TOPO_FILE and NCCL_GRAPH_FILE as NCCL reads them (src/graph/xml.cc at v2.30.7),
 * which is not as XML is read: no declaration, no tabs, no text, one line for each tag.
 * Owns: nothing.  Threads: any.  Blocks: never.
 * Fails: -EINVAL, with the line and what NCCL does not take. */
#ifndef NET_PLUGIN_TOOLS_NCCL_XML_H
#define NET_PLUGIN_TOOLS_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>

/* NCCL's limits, MAX_STR_LEN and MAX_ATTR_COUNT. */
enum { NCCL_XML_WORD_MAX = 256, NCCL_XML_ATTRIBUTES_MAX = 16, NCCL_XML_WHY_MAX = 256 };

struct nccl_xml_element {
  char name[NCCL_XML_WORD_MAX];
  int line; /* of its begin, from 1 */
  int count;
  struct {
    char key[NCCL_XML_WORD_MAX], value[NCCL_XML_WORD_MAX];
  } attributes[NCCL_XML_ATTRIBUTES_MAX + 1]; /* one more takes what is too many, as in NCCL */
};

/* NULL: it has none of that name. */
const char *nccl_xml_attribute(const struct nccl_xml_element *element, const char *key);

/* Which element NCCL takes within which; it passes over others with all that is in them. Ends with
 * a NULL; `parent` is "" at the top. */
struct nccl_xml_rule {
  const char *parent, *name;
};

struct nccl_xml_error {
  int line;
  char why[NCCL_XML_WHY_MAX];
};

/* Calls back with each element that NCCL takes, in the order of the file. */
typedef void nccl_xml_fn(void *context, const struct nccl_xml_element *element);
int nccl_xml_read(const char *text, size_t length, const struct nccl_xml_rule *rules,
                  nccl_xml_fn *found, void *context, struct nccl_xml_error *error);

#endif
