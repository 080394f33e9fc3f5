/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a measurement as one line. No library, so that a plugin can record, too. */
#include "common/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool sample_is_word(const char *text) {
  static const char accepted[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = strlen(text);
  return length < SAMPLE_WORD_MAX && strspn(text, accepted) == length;
}

static bool is_writable(const struct sample *sample) {
  return sample_is_word(sample->plugin) && sample_is_word(sample->env) &&
         sample_is_word(sample->run) && sample_is_word(sample->hosts) &&
         sample_is_word(sample->topology) && isfinite(sample->median_us) &&
         isfinite(sample->mad_us) && isfinite(sample->p99_us);
}

size_t sample_format(const struct sample *sample, char *text, size_t text_bytes) {
  if (!is_writable(sample)) {
    return 0;
  }
  int length = snprintf(
      text, text_bytes,
      "{\"schema\":%d,\"coll\":\"%s\",\"bytes\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"ppn\":%" PRIu32
      ",\"algo\":\"%s\",\"proto\":\"%s\",\"channels\":%" PRIu32 ",\"chunk\":%" PRIu32
      ",\"default\":%s,\"in_place\":%s,\"n\":%" PRIu32
      ",\"median_us\":%.3f,\"mad_us\":%.3f,\"p99_us\":%.3f,\"order\":%" PRIu64 ",\"time\":%" PRIu64
      ",\"nccl\":%d,\"plugin\":\"%s\",\"env\":\"%s\",\"run\":\"%s\",\"hosts\":\"%s\",\"topology\":"
      "\"%s\"}\n",
      SAMPLE_SCHEMA, profile_collective_name(sample->collective), sample->bytes, sample->nodes,
      sample->ppn, profile_algorithm_name(sample->algorithm),
      profile_protocol_name(sample->protocol), sample->channels, sample->chunk,
      sample->is_default ? "true" : "false", sample->is_in_place ? "true" : "false", sample->n,
      sample->median_us, sample->mad_us, sample->p99_us, sample->order, sample->time, sample->nccl,
      sample->plugin, sample->env, sample->run, sample->hosts, sample->topology);
  return length > 0 && (size_t)length < text_bytes ? (size_t)length : 0;
}
