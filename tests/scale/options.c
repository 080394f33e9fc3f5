/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. */
#include "tests/scale/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GBIT 125e6
#define LATENCY_NS 20000u /* of the network, one way */

static const unsigned sockets[] = { 0, 1, 16, 0 };

static int transport, algorithm = STEPS_AUTO;
static const char *workloads = "resnet50", *hosts = "8";
static const char *nic_gbps = "32", *flow_gbps = "4", *bytes_scale = "1", *jitter = "0",
                  *stragglers = "0", *slowdown = "1.1", *slow_hosts = "0", *slow_rate = "50",
                  *failed_hosts = "0";
static uint64_t burst = 0, hop = 10000, inside = 3000, launch = 10000, learn = 5000000000;
static int64_t nics = 1, paths = 32, copy_ps = 5, gpus = 1, variants = 8, measured = 100,
               skipped = 20, seed = 1;

#define NUMBER(n, v, a, h)                                                                         \
  { .name = n, .type = CLI_STRING, .value = &v, .argument = a, .help = h }
#define COUNT(n, v, l, m, h)                                                                       \
  { .name = n, .type = CLI_INT, .value = &v, .argument = "N", .help = h, .low = l, .high = m }
#define TIME(n, v, h)                                                                              \
  { .name = n, .type = CLI_DURATION, .value = &v, .argument = "TIME", .help = h }
#define SIZE(n, v, h)                                                                              \
  { .name = n, .type = CLI_SIZE, .value = &v, .argument = "SIZE", .help = h }
#define WORD(n, v, w, h)                                                                           \
  { .name = n, .type = CLI_WORD, .value = &v, .argument = w, .help = h }

const struct cli_option options_table[] = {
  NUMBER("workloads", workloads, "LIST", "names in tests/workloads, or paths"),
  NUMBER("hosts", hosts, "LIST", "numbers of hosts, 1 to 1024"),
  COUNT("gpus", gpus, 1, 16, "GPUs of each host"),
  WORD("transport", transport, "stratus|socket|socket-2x8|ideal",
       "Socket has 1 flow for a connection, or 16; ideal: the NIC and no cost"),
  WORD("algorithm", algorithm, "ring|tree|auto", "of AllReduce; auto: as NCCL chooses"),
  NUMBER("bytes-scale", bytes_scale, "X", "elements are multiplied by it"),
  NUMBER("nic-gbps", nic_gbps, "R", "rate of a NIC, Gb/s"),
  NUMBER("flow-gbps", flow_gbps, "R", "most that the flows of a path have; 0: no cap"),
  COUNT("nics", nics, 1, NETWORK_NICS_MAX, "NICs of a host, merged"),
  COUNT("paths", paths, 1, 4096, "that flows of a NIC draw from"),
  SIZE("burst", burst, "of the token buckets"),
  TIME("hop", hop, "between GPU and network, for each message that arrives"),
  COUNT("copy-ps", copy_ps, 0, 100000, "a GPU's time for a byte, picoseconds"),
  TIME("inside", inside, "of a hop between GPUs of a host"),
  TIME("launch", launch, "of a collective"),
  TIME("learn", learn, "bulk traffic before services are measured"),
  COUNT("variants", variants, 1, OPTIONS_VARIANTS_MAX, "draws of paths, which hosts share"),
  NUMBER("slow-hosts", slow_hosts, "PERCENT", "hosts whose NIC is slow, rounded up"),
  NUMBER("slow-rate", slow_rate, "PERCENT", "of its rate that such a NIC has"),
  NUMBER("failed-hosts", failed_hosts, "PERCENT", "hosts of which a NIC is down, rounded up"),
  NUMBER("stragglers", stragglers, "PERCENT", "hosts that compute slowly, rounded up"),
  NUMBER("slowdown", slowdown, "X", "a straggler's times are multiplied by it"),
  NUMBER("jitter", jitter, "PERCENT", "each host's times vary by so much, in each step"),
  COUNT("steps", measured, 1, 20000, "steps that are measured"),
  COUNT("skip", skipped, 0, 100000, "steps before them"),
  COUNT("seed", seed, 0, INT32_MAX, "of all draws"),
  { .name = NULL },
};

static int bad(const char *name, const char *text, const char *accepted) {
  return cli_fail_usage("--%s '%s': %s\n", name, text, accepted);
}

static int read_decimal(const char *name, const char *text, double low, double high,
                        double *value) {
  char *end, accepted[64];
  *value = strtod(text, &end);
  if (end != text && *end == '\0' && *value >= low && *value <= high) {
    return CLI_OK;
  }
  snprintf(accepted, sizeof accepted, "a number from %g to %g", low, high);
  return bad(name, text, accepted);
}

struct decimal {
  const char *name, *text;
  double low, high;
  double *value;
};

static int read_decimals(struct options *options) {
  double nic, flow, slow, failed, straggler, jitter_part, rate;
  const struct decimal decimals[] = {
    { "nic-gbps", nic_gbps, 0.001, 10000, &nic },
    { "flow-gbps", flow_gbps, 0, 10000, &flow },
    { "bytes-scale", bytes_scale, 1e-6, WORKLOAD_SCALE_MAX, &options->bytes_scale },
    { "slow-hosts", slow_hosts, 0, 100, &slow },
    { "slow-rate", slow_rate, 1, 100, &rate },
    { "failed-hosts", failed_hosts, 0, 100, &failed },
    { "stragglers", stragglers, 0, 100, &straggler },
    { "slowdown", slowdown, 1.0001, 100, &options->steps.slowdown },
    { "jitter", jitter, 0, 50, &jitter_part },
  };
  for (size_t i = 0; i < sizeof decimals / sizeof *decimals; i++) {
    const struct decimal *it = &decimals[i];
    if (read_decimal(it->name, it->text, it->low, it->high, it->value) != CLI_OK) {
      return CLI_USAGE;
    }
  }
  options->host.network.nic_rate = (uint64_t)(nic * BYTES_PER_GBIT);
  options->host.network.flow_rate = (uint64_t)(flow * BYTES_PER_GBIT);
  options->host.network.wire_rate = options->host.network.nic_rate;
  options->slow_share = slow / 100;
  options->slow_rate = rate / 100;
  options->failed_share = failed / 100;
  options->steps.straggler = straggler / 100;
  options->steps.jitter = jitter_part / 100;
  return CLI_OK;
}

static int read_hosts(struct options *options) {
  char *copy = strdup(hosts), *state = NULL;
  int status = CLI_OK;
  for (char *word = strtok_r(copy, ",", &state); word; word = strtok_r(NULL, ",", &state)) {
    double value;
    if (options->hosts_count == OPTIONS_HOSTS_MAX) {
      status = bad("hosts", hosts, "at most 16 numbers");
      break;
    }
    status = read_decimal("hosts", word, 1, 1024, &value);
    if (status != CLI_OK) {
      break;
    }
    options->hosts[options->hosts_count++] = (unsigned)value;
  }
  free(copy);
  return status == CLI_OK && options->hosts_count == 0 ? bad("hosts", hosts, "1 to 1024") : status;
}

static int read_workloads(struct options *options) {
  static char names[4096];
  char *state = NULL;
  snprintf(names, sizeof names, "%s", workloads);
  for (char *word = strtok_r(names, ",", &state); word; word = strtok_r(NULL, ",", &state)) {
    if (options->workload_count == OPTIONS_WORKLOADS_MAX) {
      return bad("workloads", workloads, "at most 16");
    }
    options->workloads[options->workload_count++] = word;
  }
  return options->workload_count > 0 ? CLI_OK : bad("workloads", workloads, "names or paths");
}

int options_read(struct options *options) {
  *options = (struct options){
    .transport = transport,
    .host = { .network = { .burst_bytes = (uint32_t)burst,
                           .latency_ns = LATENCY_NS,
                           .nics = (unsigned)nics,
                           .paths = (unsigned)paths },
              .seed = (uint64_t)seed,
              .sockets = sockets[transport] },
    .schedule = { .gpus = (unsigned)gpus,
                  .hop_ns = (double)hop,
                  .copy_ps = (double)copy_ps,
                  .inside_ns = (double)inside,
                  .latency_ns = LATENCY_NS },
    .steps = { .launch_ns = (double)launch,
               .measured = (unsigned)measured,
               .skipped = (unsigned)skipped,
               .seed = (uint64_t)seed,
               .choice = (enum steps_choice)algorithm },
    .learn_ns = learn,
    .learn_bytes = 512u << 10,
    .variants = (unsigned)variants,
  };
  int status = read_decimals(options);
  status = status == CLI_OK ? read_hosts(options) : status;
  status = status == CLI_OK ? read_workloads(options) : status;
  if (status == CLI_OK && options->failed_share > 0 && (nics < 2 || transport != OPTIONS_STRATUS)) {
    return cli_fail_usage(
        "--failed-hosts: with --nics 2 or more and stratus: a job of Socket ends there\n");
  }
  options->steps.nic_rate = options->host.network.nic_rate * (uint64_t)nics;
  options->schedule.wire_ps = 1e12 / (double)(options->host.network.wire_rate * (uint64_t)nics);
  return status;
}
