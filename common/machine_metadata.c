/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.0 by hand: one or two short requests to an address that never leaves the host. */
#include "common/machine_metadata.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptor.h"

enum { ANSWER_MAX = 4096, TOKEN_MAX = 512 };

/* From the clouds' documents and cloud-init's DataSource*.py. `token_path` is asked first, by PUT,
 * where there is one. */
static const struct service {
  const char *address;
  const char *path;
  const char *header; /* of the request; with a token: its name */
  const char *token_path;
  const char *token_header;
} services[MACHINE_CLOUD_COUNT] = {
  [MACHINE_CLOUD_AWS] = { "169.254.169.254", "/latest/meta-data/instance-type",
                          "X-aws-ec2-metadata-token", "/latest/api/token",
                          "X-aws-ec2-metadata-token-ttl-seconds: 60" },
  [MACHINE_CLOUD_GCP] = { "169.254.169.254", "/computeMetadata/v1/instance/machine-type",
                          "Metadata-Flavor: Google", NULL, NULL },
  [MACHINE_CLOUD_AZURE] = { "169.254.169.254",
                            "/metadata/instance/compute/vmSize?api-version=2021-08-01&format=text",
                            "Metadata: true", NULL, NULL },
  [MACHINE_CLOUD_ALIBABA] = { "100.100.100.200", "/latest/meta-data/instance/instance-type",
                              "X-aliyun-ecs-metadata-token", "/latest/api/token",
                              "X-aliyun-ecs-metadata-token-ttl-seconds: 60" },
  [MACHINE_CLOUD_OCI] = { "169.254.169.254", "/opc/v2/instance/shape",
                          "Authorization: Bearer Oracle", NULL, NULL },
  [MACHINE_CLOUD_TENCENT] = { "169.254.0.23", "/latest/meta-data/instance/instance-type", NULL,
                              NULL, NULL },
};

/* 0 as soon as the socket is ready for that. */
static int await(int fd, short events, uint64_t until_ns) {
  for (;;) {
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= until_ns) {
      return -ETIMEDOUT;
    }
    struct pollfd poll_fd = { .fd = fd, .events = events };
    int ready = poll(&poll_fd, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1);
    if (ready > 0) {
      return 0;
    }
    if (ready < 0 && errno != EINTR) {
      return -errno;
    }
  }
}

static int dial(const struct machine_metadata_place *place, uint64_t until_ns) {
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(place->port) };
  if (inet_pton(AF_INET, place->address, &to.sin_addr) != 1) {
    return -EINVAL;
  }
  int fd = DESCRIPTOR(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) {
    return -errno;
  }
  int error = 0;
  if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
    error = errno == EINPROGRESS ? await(fd, POLLOUT, until_ns) : -errno;
    socklen_t length = sizeof error;
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0) {
      error = -error;
    }
  }
  if (error) {
    descriptor_close(fd);
    return error;
  }
  return fd;
}

/* All that comes until the service closes, NUL-terminated. */
static int receive_all(int fd, uint64_t until_ns, char answer[ANSWER_MAX]) {
  size_t got = 0;
  for (;;) {
    int error = await(fd, POLLIN, until_ns);
    ssize_t n = error ? -1 : recv(fd, answer + got, ANSWER_MAX - 1 - got, MSG_DONTWAIT);
    if (error || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      return error ? error : -errno;
    }
    got += n > 0 ? (size_t)n : 0;
    if (n == 0 || got == ANSWER_MAX - 1) {
      answer[got] = '\0';
      return 0;
    }
  }
}

/* The body of a 200, without blanks around it. */
static int take_body(const char *answer, char *body, size_t body_bytes) {
  const char *start = strstr(answer, "\r\n\r\n");
  if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200", 4) != 0 || !start) {
    return -EPROTO;
  }
  start += strspn(start, " \r\n");
  size_t length = strlen(start);
  while (length > 0 && isspace((unsigned char)start[length - 1])) {
    length--;
  }
  if (length == 0 || length >= body_bytes) {
    return -EPROTO;
  }
  memcpy(body, start, length);
  body[length] = '\0';
  return 0;
}

static int request(const struct machine_metadata_place *place, uint64_t until_ns,
                   const char *method, const char *path, const char *header, char *body,
                   size_t body_bytes) {
  char text[TOKEN_MAX + 512], answer[ANSWER_MAX];
  int length = snprintf(text, sizeof text, "%s %s HTTP/1.0\r\nHost: %s\r\n%s%s\r\n", method, path,
                        place->address, header, header[0] ? "\r\n" : "");
  int fd = dial(place, until_ns);
  if (fd < 0) {
    return fd;
  }
  int error = send(fd, text, (size_t)length, MSG_NOSIGNAL) == length ? 0 : -EIO;
  error = error ? error : receive_all(fd, until_ns, answer);
  descriptor_close(fd);
  return error ? error : take_body(answer, body, body_bytes);
}

static bool is_type_text(const char *text) {
  for (; *text; text++) {
    if (!isalnum((unsigned char)*text) && !strchr("._-", *text)) {
      return false;
    }
  }
  return true;
}

int machine_metadata_ask(enum machine_cloud cloud, const struct machine_metadata_place *place,
                         uint64_t timeout_ns, char instance_type[MACHINE_TEXT_MAX]) {
  instance_type[0] = '\0';
  if (cloud >= MACHINE_CLOUD_COUNT || !services[cloud].address) {
    return -ENOTSUP;
  }
  const struct service *service = &services[cloud];
  const struct machine_metadata_place own = { service->address, 80 };
  uint64_t until_ns = clock_now_ns() + timeout_ns;
  char header[TOKEN_MAX + 64] = "", token[TOKEN_MAX], body[256];
  place = place ? place : &own;
  if (service->token_path) {
    int error = request(place, until_ns, "PUT", service->token_path, service->token_header, token,
                        sizeof token);
    if (error) {
      return error;
    }
    snprintf(header, sizeof header, "%s: %s", service->header, token);
  } else if (service->header) {
    snprintf(header, sizeof header, "%s", service->header);
  }
  int error = request(place, until_ns, "GET", service->path, header, body, sizeof body);
  if (error) {
    return error;
  }
  /* GCP: "projects/123/machineTypes/a3-highgpu-8g" */
  const char *slash = strrchr(body, '/');
  const char *type = slash ? slash + 1 : body;
  if (!type[0] || strlen(type) >= MACHINE_TEXT_MAX || !is_type_text(type)) {
    return -EPROTO;
  }
  strcpy(instance_type, type);
  return 0;
}
