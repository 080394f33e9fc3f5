/* SPDX-License-Identifier: Apache-2.0 */
/* See stats_document.h. */
#include "net_plugin/observe/stats_document.h"

#include <stdlib.h>
#include <string.h>

#include "net_plugin/observe/limits.h"

#define FIELD(id, name, type, unit, text) { #name, unit },
const struct stats_field stats_connection_fields[] = { STATS_CONNECTION_FIELDS(FIELD) };
const struct stats_field stats_flow_fields[] = { STATS_FLOW_FIELDS(FIELD) };
#undef FIELD

/* One more element, zeroed. The array doubles. */
static void *grow(void **array, size_t *count, size_t *room, size_t limit, size_t size) {
  if (*count == *room) {
    size_t wanted = *room ? *room * 2 : 16;
    void *larger = wanted <= limit ? realloc(*array, wanted * size) : NULL;
    if (!larger) {
      return NULL;
    }
    *array = larger;
    *room = wanted;
  }
  void *element = (char *)*array + (*count)++ * size;
  memset(element, 0, size);
  return element;
}

struct stats_connection *stats_document_add_connection(struct stats_document *document) {
  void *array = document->connections;
  struct stats_connection *added =
      grow(&array, &document->connection_count, &document->connection_room, STATS_CONNECTIONS_MAX,
           sizeof *added);
  document->connections = array;
  document->is_truncated |= !added;
  return added;
}

struct stats_flow *stats_document_add_flow(struct stats_document *document) {
  void *array = document->flows;
  struct stats_flow *added =
      grow(&array, &document->flow_count, &document->flow_room, STATS_FLOWS_MAX, sizeof *added);
  document->flows = array;
  document->is_truncated |= !added;
  return added;
}

void stats_document_free(struct stats_document *document) {
  free(document->connections);
  free(document->flows);
  document->connections = NULL;
  document->flows = NULL;
}
