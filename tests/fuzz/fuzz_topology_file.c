/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a file for NCCL_TOPO_FILE or NCCL_GRAPH_FILE: what is refused has a line of it and a
 * reason of visible characters, and elements come in the order of their lines. */
#include "net_plugin/tools/nccl_xml.h"
#include "tests/fuzz/fuzz.h"

struct seen {
  int line, last;
};

static void check_element(void *context, const struct nccl_xml_element *element) {
  struct seen *seen = context;
  FUZZ_CHECK(element->line >= seen->line && element->line <= seen->last);
  FUZZ_CHECK(strlen(element->name) < NCCL_XML_WORD_MAX);
  FUZZ_CHECK(element->count >= 0 && element->count <= NCCL_XML_ATTRIBUTES_MAX);
  for (int i = 0; i < element->count; i++) {
    const char *key = element->attributes[i].key;
    FUZZ_CHECK(strlen(key) < NCCL_XML_WORD_MAX && nccl_xml_attribute(element, key));
    FUZZ_CHECK(strlen(element->attributes[i].value) < NCCL_XML_WORD_MAX);
  }
  seen->line = element->line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct nccl_xml_rule rules[] = {
    { "", "system" }, { "system", "cpu" }, { "cpu", "cpu" }, { "", NULL }
  };
  struct nccl_xml_error error = { 0 };
  struct seen seen = { 1, 1 };
  for (size_t i = 0; i < size; i++) {
    seen.last += data[i] == '\n';
  }
  if (nccl_xml_read((const char *)data, size, rules, check_element, &seen, &error) < 0) {
    FUZZ_CHECK(error.line >= 1 && error.line <= seen.last && error.why[0]);
    for (const char *c = error.why; *c; c++) {
      FUZZ_CHECK(*c >= ' ' && *c <= '~');
    }
  }
  return 0;
}
