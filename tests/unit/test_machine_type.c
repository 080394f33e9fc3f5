/* SPDX-License-Identifier: Apache-2.0 */
/* The instance type: the user's word, a metadata service that answers well, badly, late or not at
 * all, and inference. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/machine.h"
#include "common/machine_metadata.h"
#include "common/param.h"
#include "tests/lib/log_capture.h"
#include "tests/lib/unit.h"

static struct machine machine;

static void identify(const char *first, const char *second) {
  param_load((char *[]){ (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL });
  machine_identify(&machine);
}

static int stop(void **state) {
  (void)state;
  log_capture_stop();
  param_load((char *[]){ NULL });
  return 0;
}

UNIT_TEST_WITH(the_users_word_comes_first, log_capture_set_up, stop) {
  identify("STRATUS_SYSFS_ROOT=tests/data/sysfs/aws", "STRATUS_INSTANCE_TYPE=p5.48xlarge");
  assert_int_equal(machine.cloud, MACHINE_CLOUD_AWS);
  assert_string_equal(machine.instance_type, "p5.48xlarge");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_FROM_USER);
  identify("STRATUS_SYSFS_ROOT=tests/data/sysfs/aws", "STRATUS_INSTANCE_TYPE=GCP:a3-megagpu-8g");
  assert_int_equal(machine.cloud, MACHINE_CLOUD_GCP);
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  identify("STRATUS_SYSFS_ROOT=tests/data/sysfs/aws", "STRATUS_INSTANCE_TYPE=ibm:x");
  assert_string_equal(machine.instance_type, "p4d.24xlarge");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_FROM_DMI);
  assert_int_equal(log_capture_find("before the colon goes aws, gcp"), 1);
}

UNIT_TEST_WITH(gpus_and_nics_leave_one_possibility, log_capture_set_up, stop) {
  identify("STRATUS_SYSFS_ROOT=tests/data/sysfs/gcp-a3-mega", NULL);
  assert_string_equal(machine.instance_type, "a3-megagpu-8g");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_INFERRED);
  assert_string_equal(machine_type_origin_name(machine.type_origin), "GPUs and cloud");
  /* the same GPUs in nobody's cloud say nothing */
  identify("STRATUS_SYSFS_ROOT=tests/data/sysfs/baremetal-roce", NULL);
  assert_string_equal(machine.instance_type, "");
  assert_int_equal(machine.type_origin, MACHINE_TYPE_UNKNOWN);
}

/* ---- the metadata service ---- */

struct service {
  int fd;
  const char *const *answers; /* to one request each; NULL: says nothing, and ends */
  char heard[2][1024];
  pthread_t thread;
};

static void *serve(void *argument) {
  struct service *service = argument;
  for (int i = 0; i < 2; i++) {
    int fd = accept(service->fd, NULL, NULL);
    ssize_t n = fd < 0 ? 0 : recv(fd, service->heard[i], sizeof service->heard[i] - 1, 0);
    if (n <= 0) {
      return NULL;
    }
    if (!service->answers[i]) {
      usleep(300000);
      close(fd);
      return NULL;
    }
    send(fd, service->answers[i], strlen(service->answers[i]), MSG_NOSIGNAL);
    close(fd);
    if (i == 0 && !service->answers[1]) {
      return NULL;
    }
  }
  return NULL;
}

static int ask(enum machine_cloud cloud, const char *const answers[2], struct service *service,
               char type[MACHINE_TEXT_MAX]) {
  struct sockaddr_in address = { .sin_family = AF_INET };
  socklen_t length = sizeof address;
  *service = (struct service){ .answers = answers };
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  service->fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(service->fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(service->fd, 4), 0);
  assert_int_equal(getsockname(service->fd, (struct sockaddr *)&address, &length), 0);
  assert_int_equal(pthread_create(&service->thread, NULL, serve, service), 0);
  const struct machine_metadata_place place = { "127.0.0.1", ntohs(address.sin_port) };
  int error = machine_metadata_ask(cloud, &place, 200 * NS_PER_MS, type);
  shutdown(service->fd, SHUT_RDWR);
  pthread_join(service->thread, NULL);
  close(service->fd);
  return error;
}

UNIT_TEST(each_cloud_is_asked_its_way) {
  struct service service;
  char type[MACHINE_TEXT_MAX];
  const char *token[] = { "HTTP/1.1 200 OK\r\n\r\nTOKEN", "HTTP/1.1 200 OK\r\n\r\np5.48xlarge" };
  assert_int_equal(ask(MACHINE_CLOUD_AWS, token, &service, type), 0);
  assert_string_equal(type, "p5.48xlarge");
  assert_non_null(strstr(service.heard[0], "PUT /latest/api/token HTTP/1.0\r\n"));
  assert_non_null(strstr(service.heard[0], "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n"));
  assert_non_null(strstr(service.heard[1], "\r\nX-aws-ec2-metadata-token: TOKEN\r\n"));
  const char *gcp[] = { "HTTP/1.1 200 OK\r\nA: b\r\n\r\nprojects/1/machineTypes/a3-megagpu-8g\n",
                        NULL };
  assert_int_equal(ask(MACHINE_CLOUD_GCP, gcp, &service, type), 0);
  assert_string_equal(type, "a3-megagpu-8g");
  assert_non_null(strstr(service.heard[0], "\r\nMetadata-Flavor: Google\r\n\r\n"));
  const char *azure[] = { "HTTP/1.1 200 OK\r\n\r\nStandard_ND96isr_H100_v5", NULL };
  assert_int_equal(ask(MACHINE_CLOUD_AZURE, azure, &service, type), 0);
  assert_string_equal(type, "Standard_ND96isr_H100_v5");
  assert_int_equal(ask(MACHINE_CLOUD_OCI, azure, &service, type), 0);
  assert_non_null(strstr(service.heard[0], "GET /opc/v2/instance/shape "));
  assert_int_equal(ask(MACHINE_CLOUD_TENCENT, azure, &service, type), 0);
  assert_int_equal(ask(MACHINE_CLOUD_ALIBABA, token, &service, type), 0);
}

UNIT_TEST(bad_answers_are_refused) {
  static const char *const bad[] = {
    "HTTP/1.1 404 Not Found\r\n\r\nno",           "HTTP/1.1 200 OK\r\n\r\n",   "hello",
    "HTTP/1.1 200 OK\r\n\r\n<html>a page</html>", "HTTP/1.1 200 OK\r\n\r\nx/",
  };
  struct service service;
  char type[MACHINE_TEXT_MAX];
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const char *answers[] = { bad[i], NULL };
    assert_int_equal(ask(MACHINE_CLOUD_GCP, answers, &service, type), -EPROTO);
    assert_string_equal(type, "");
  }
  assert_int_equal(machine_metadata_ask(MACHINE_CLOUD_UNKNOWN, NULL, NS_PER_S, type), -ENOTSUP);
}

UNIT_TEST(silence_ends_with_the_timeout) {
  static const char *const answers[] = { NULL, NULL };
  struct service service;
  char type[MACHINE_TEXT_MAX];
  assert_int_equal(ask(MACHINE_CLOUD_GCP, answers, &service, type), -ETIMEDOUT);
  assert_string_equal(type, "");
}

UNIT_MAIN(NULL, NULL)
