/* SPDX-License-Identifier: Apache-2.0 */
/* HCAs as the plugin sees them, shown and checked. */
#include "net_plugin/tools/rdma.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/quantity.h"
#include "common/sysfs.h"
#include "net_plugin/tools/document.h"

enum { TEXT_MAX = 512 };

static bool has_device_nodes(const char *root) {
  struct sysfs_list list;
  bool has_any = false;
  if (sysfs_list(root, &list, "dev/infiniband") < 0) {
    return false;
  }
  for (size_t i = 0; i < list.count; i++) {
    has_any |= !strncmp(list.entries[i]->d_name, "uverbs", strlen("uverbs"));
  }
  sysfs_list_free(&list);
  return has_any;
}

void rdma_report_make(const struct device_table *table, struct rdma_report *out) {
  struct nic nics[DEVICE_PHYSICAL_MAX];
  unsigned nic_count = device_table_nics(table, nics);
  *out = (struct rdma_report){ .lockable_bytes = UINT64_MAX };
  const char *root = rdma_survey_settings(&out->settings);
  rdma_sysfs_read_gpu(root, &out->gpu);
  out->has_device_nodes = has_device_nodes(root);
  snprintf(out->library_reason, sizeof(out->library_reason), "%s", rdma_survey_library_reason());
  struct rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    out->lockable_bytes = limit.rlim_cur;
  }
  out->rows = calloc(RDMA_PORTS_MAX, sizeof(*out->rows));
  out->row_count = out->rows ? rdma_survey(nics, nic_count, true, out->rows) : 0;
  for (unsigned i = 0; i < out->row_count; i++) {
    out->used_count += out->rows[i].is_used;
    out->can_dmabuf |= out->rows[i].has_dmabuf;
  }
}

void rdma_report_free(struct rdma_report *report) {
  free(report->rows);
  report->rows = NULL;
}

/* ---- JSON ---- */

static json_t *gids_to_json(const struct rdma_survey_row *row) {
  json_t *list = json_array();
  for (unsigned i = 0; i < row->port.gid_count; i++) {
    const struct rdma_gid *gid = &row->port.gids[i];
    char text[RDMA_GID_TEXT_MAX];
    json_array_append_new(
        list,
        json_pack("{s:i, s:s, s:b, s:o, s:s?}", "index", gid->index, "address",
                  rdma_choice_gid_text(gid->bytes, text), "chosen", (int)i == row->gid,
                  "roce_version", gid->roce_version ? json_integer(gid->roce_version) : json_null(),
                  "interface", document_or_null(gid->netdev)));
  }
  return list;
}

static json_t *row_to_json(const struct rdma_survey_row *row) {
  const struct rdma_sysfs_port *port = &row->port;
  char guid[24];
  snprintf(guid, sizeof(guid), "%016" PRIx64, port->guid);
  return json_pack(
      "{s:s, s:i, s:s, s:s, s:s, s:i, s:s, s:b, s:o, s:s, s:s?, s:s?, s:s?, s:o, s:o, s:o, "
      "s:s?, s:s?}",
      "hca", port->name, "port", port->port, "model", row->traits.model, "link_layer",
      port->is_infiniband ? "InfiniBand" : "Ethernet", "state", port->state, "speed_mbps",
      (int)port->speed_mbps, "guid", guid, "used", row->is_used, "gids", gids_to_json(row), "kind",
      rdma_survey_kind(row), "interface", document_or_null(row->nic), "pci_path",
      document_or_null(port->pci_path), "driver", document_or_null(port->driver), "numa_node",
      port->numa_node >= 0 ? json_integer(port->numa_node) : json_null(), "mtu",
      row->is_opened ? json_integer((json_int_t)row->mtu_bytes) : json_null(), "dmabuf",
      row->is_opened ? json_boolean(row->has_dmabuf) : json_null(), "reason",
      document_or_null(row->why), "warning", document_or_null(row->warning));
}

json_t *rdma_report_to_json(const struct rdma_report *report) {
  json_t *rows = json_array();
  for (unsigned i = 0; i < report->row_count; i++) {
    json_array_append_new(rows, row_to_json(&report->rows[i]));
  }
  return json_pack("{s:b, s:b, s:b, s:o, s:s?, s:{s:s?, s:s?, s:b, s:b}}", "on",
                   !report->settings.is_off, "libibverbs", !report->library_reason[0],
                   "device_nodes", report->has_device_nodes, "hcas", rows, "off_reason",
                   report->settings.off_why, "gpu", "driver", document_or_null(report->gpu.nvidia),
                   "peermem", document_or_null(report->gpu.peermem), "open_driver",
                   report->gpu.has_open_driver, "dmabuf", report->can_dmabuf);
}

/* ---- table ---- */

static void print_row(const struct rdma_survey_row *row) {
  char name[RDMA_HCA_NAME_MAX + 8], mtu[16] = "-", gid[16] = "-";
  snprintf(name, sizeof(name), "%s:%d", row->port.name, row->port.port);
  if (row->is_opened) {
    snprintf(mtu, sizeof(mtu), "%u", row->mtu_bytes);
  }
  if (row->gid >= 0) {
    snprintf(gid, sizeof(gid), "%d", row->port.gids[row->gid].index);
  }
  printf("%-15s  %-10s  %9u  %-10s  %5s  %-15s  %3s  %s\n", name, row->traits.model,
         row->port.speed_mbps, rdma_survey_kind(row), mtu, row->nic[0] ? row->nic : "-", gid,
         row->is_used ? "used" : row->why);
  for (unsigned i = 0; i < row->port.gid_count; i++) {
    const struct rdma_gid *it = &row->port.gids[i];
    char text[RDMA_GID_TEXT_MAX], version[16] = "";
    if (it->roce_version) {
      snprintf(version, sizeof(version), "RoCE v%d", it->roce_version);
    }
    printf("    GID %-3d  %-40s  %-8s  %s\n", it->index, rdma_choice_gid_text(it->bytes, text),
           version, it->netdev);
  }
  if (row->warning[0]) {
    printf("    %s\n", row->warning);
  }
}

static const char *gpu_text(const struct rdma_report *report, char text[TEXT_MAX]) {
  const struct rdma_gpu_facts *gpu = &report->gpu;
  snprintf(text, TEXT_MAX, "driver %s, peer memory module %s, dma-buf %s",
           gpu->nvidia[0] ? gpu->nvidia : "none", gpu->has_peermem ? gpu->peermem : "not loaded",
           !report->can_dmabuf    ? "not taken by any HCA in use"
           : gpu->has_open_driver ? "possible"
                                  : "taken by HCAs, but not given by this GPU driver");
  return text;
}

void rdma_report_print(const struct rdma_report *report) {
  char text[TEXT_MAX];
  printf("\nRDMA: %s\n", report->settings.is_off     ? report->settings.off_why
                         : report->row_count == 0    ? "there is no HCA"
                         : report->library_reason[0] ? report->library_reason
                         : report->used_count == 0   ? "no HCA is used"
                                                     : "on");
  if (report->row_count == 0) {
    return;
  }
  printf("%-15s  %-10s  %9s  %-10s  %5s  %-15s  %3s  %s\n", "HCA:port", "model", "Mb/s", "link",
         "MTU", "interface", "GID", "state");
  for (unsigned i = 0; i < report->row_count; i++) {
    print_row(&report->rows[i]);
  }
  printf("GPU memory: %s\n", gpu_text(report, text));
}

/* ---- checks ---- */

static void check_row(const struct rdma_survey_row *row) {
  const struct rdma_sysfs_port *port = &row->port;
  char text[RDMA_GID_TEXT_MAX];
  if (row->is_used) {
    const struct rdma_gid *gid = &port->gids[row->gid];
    doctor_tell(DOCTOR_GOOD, "RDMA: %s uses %s port %d (%s, %s, %u Mb/s, MTU %u, GID %d = %s)",
                row->nic, port->name, port->port, row->traits.model, rdma_survey_kind(row),
                port->speed_mbps, row->mtu_bytes, gid->index,
                rdma_choice_gid_text(gid->bytes, text));
  } else {
    doctor_tell(DOCTOR_HINT, "RDMA: %s port %d is not used: %s", port->name, port->port, row->why);
  }
  if (row->warning[0]) {
    doctor_tell(DOCTOR_BAD, "%s", row->warning);
  }
}

static void check_gpu(const struct rdma_report *report) {
  char text[TEXT_MAX];
  bool is_direct = report->gpu.has_peermem || (report->gpu.has_open_driver && report->can_dmabuf);
  if (!report->gpu.nvidia[0]) {
    return;
  }
  doctor_tell(is_direct ? DOCTOR_GOOD : DOCTOR_HINT, "GPU memory and RDMA: %s%s",
              gpu_text(report, text),
              is_direct ? "" : "; data is staged through host memory (modprobe nvidia-peermem)");
}

void rdma_report_check(const struct rdma_report *report) {
  const uint64_t enough = UINT64_C(1) << 30;
  char text[QUANTITY_TEXT_MAX];
  if (report->row_count == 0) {
    doctor_tell(DOCTOR_GOOD, "RDMA: there is no HCA; TCP is used");
    return;
  }
  if (report->settings.is_off) {
    doctor_tell(DOCTOR_HINT, "RDMA is off: %s", report->settings.off_why);
    return;
  }
  if (report->library_reason[0]) {
    doctor_tell(DOCTOR_BAD, "RDMA: libibverbs cannot be loaded (%s); install rdma-core",
                report->library_reason);
  }
  if (!report->has_device_nodes) {
    doctor_tell(
        DOCTOR_BAD,
        "RDMA: /dev/infiniband is missing or empty; give it to the container, or load ib_uverbs");
  }
  for (unsigned i = 0; i < report->row_count; i++) {
    check_row(&report->rows[i]);
  }
  if (report->used_count == 0) {
    return;
  }
  if (report->lockable_bytes < enough) {
    doctor_tell(DOCTOR_BAD,
                "the limit of locked memory is %s (ulimit -l): registrations will fail, set it "
                "to unlimited",
                quantity_format_size(report->lockable_bytes, text));
  }
  check_gpu(report);
}
