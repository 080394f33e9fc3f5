/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: what each launcher says, which one counts when they nest, and what makes no sense. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/launcher.h"
#include "tests/lib/unit.h"

static struct launcher_place place;
static char error[256];

/* `variables` is "NAME=VALUE NAME=VALUE ...": the whole environment, but for cmocka's. */
static int find(const char *variables) {
  static char copy[1024], output[16];
  const char *format = getenv("CMOCKA_MESSAGE_OUTPUT");
  snprintf(output, sizeof output, "%s", format ? format : "");
  snprintf(copy, sizeof copy, "%s", variables);
  clearenv();
  setenv("CMOCKA_MESSAGE_OUTPUT", output, 1);
  char *rest = copy;
  for (char *word; (word = strsep(&rest, " "));) {
    if (*word) {
      putenv(word);
    }
  }
  error[0] = '\0';
  return launcher_find(&place, error, sizeof error);
}

UNIT_TEST(each_launcher_is_known) {
  static const struct {
    const char *variables, *launcher, *first_host;
    int local_size;
  } cases[] = {
    { "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=123",
      "Open MPI", "", 4 },
    { "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x2) "
      "SLURM_STEP_NODELIST=gpu[007-008] SLURM_JOB_ID=12 SLURM_STEP_ID=3",
      "srun", "gpu007", 4 },
    { "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", "MPICH", "", 4 },
    { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=29500 "
      "TORCHELASTIC_RUN_ID=none",
      "torchrun", "a", 4 },
    { "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=29500", "the environment", "a",
      0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(find(cases[i].variables), 1);
    assert_string_equal(place.launcher, cases[i].launcher);
    assert_int_equal(place.rank, 5);
    assert_string_equal(launcher_rank(), "5");
    assert_int_equal(place.size, 8);
    assert_int_equal(place.local_rank, 1);
    assert_int_equal(place.local_size, cases[i].local_size);
    assert_string_equal(place.first_host, cases[i].first_host);
  }
}

UNIT_TEST(none_started_it) {
  assert_int_equal(find(""), 0);
  assert_null(place.launcher);
  assert_string_equal(launcher_rank(), "");
  /* A batch script, not a step. */
  assert_int_equal(find("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1"), 0);
  assert_int_equal(find("LOCAL_RANK=1 MASTER_ADDR=a"), 0);
}

UNIT_TEST(the_innermost_counts) {
  static const char srun[] = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=b,c "
                             "SLURM_JOB_NODELIST=a,b,c MASTER_ADDR=d ";
  char text[1024];
  assert_int_equal(find(srun), 1);
  assert_string_equal(place.first_host, "b");
  snprintf(text, sizeof text, "%sRANK=9 WORLD_SIZE=16 TORCHELASTIC_RUN_ID=x", srun);
  assert_int_equal(find(text), 1);
  assert_string_equal(place.launcher, "torchrun");
  assert_int_equal(place.rank, 9);
  assert_string_equal(place.first_host, "d");
  /* The step is that of mpirun's daemons, which are on all hosts but the first. */
  snprintf(text, sizeof text, "%sOMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=6", srun);
  assert_int_equal(find(text), 1);
  assert_string_equal(place.launcher, "Open MPI");
  assert_string_equal(place.first_host, "a");
  /* A cluster's variables for the container, and mpirun in it. */
  assert_int_equal(find("RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=6"), 1);
  assert_int_equal(place.rank, 3);
  assert_string_equal(launcher_rank(), "3");
}

UNIT_TEST(what_makes_no_sense_is_named) {
  static const struct {
    const char *variables, *error;
  } cases[] = {
    { "RANK=1", "RANK=1 is set, but WORLD_SIZE is not" },
    { "WORLD_SIZE=4", "WORLD_SIZE=4 is set, but RANK is not" },
    { "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_SIZE=4 is set, but OMPI_COMM_WORLD_RANK is not" },
    { "PMIX_RANK=1 PMIX_NAMESPACE=prterun-h0-1602@1",
      "PMIX_RANK=1 is set, and no size: PRRTE tells it with --personality ompi" },
    { "RANK=4 WORLD_SIZE=4", "RANK=4 is not below WORLD_SIZE=4" },
    { "RANK=one WORLD_SIZE=4", "RANK=one: a number from 0" },
    { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE=0: a number from 1" },
    { "RANK=-1 WORLD_SIZE=4", "RANK=-1: a number from 0" },
    { "RANK=0 WORLD_SIZE=99999999", "WORLD_SIZE=99999999: a number from 1 to" },
    { "RANK=0 WORLD_SIZE=2 LOCAL_RANK=x", "LOCAL_RANK=x: a number from 0" },
    { "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4",
      "LOCAL_WORLD_SIZE=4 is above WORLD_SIZE=2" },
    { "RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2",
      "LOCAL_RANK=2 is not below LOCAL_WORLD_SIZE=2" },
    { "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=2",
      "SLURM_PROCID=2 is not below SLURM_STEP_NUM_TASKS=2" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(find(cases[i].variables), -EINVAL);
    assert_memory_equal(error, cases[i].error, strlen(cases[i].error));
  }
}

UNIT_TEST(a_rank_needs_no_size_where_there_is_none) {
  find("PMIX_RANK=1 PMIX_NAMESPACE=prterun-h0-1602@1");
  assert_string_equal(launcher_rank(), "1");
  find("RANK=one WORLD_SIZE=4");
  assert_string_equal(launcher_rank(), "");
  find("SLURM_PROCID=0 SLURM_NTASKS=4");
  assert_string_equal(launcher_rank(), "");
}

/* Slurm tells how many tasks the first host has, and others may have more. */
UNIT_TEST(hosts_of_slurm_may_differ) {
  assert_int_equal(find("SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_LOCALID=1 "
                        "SLURM_STEP_TASKS_PER_NODE=1,2 SLURM_JOB_ID=7"),
                   1);
  assert_int_equal(place.local_rank, 1);
}

UNIT_TEST(first_host_of_a_node_list) {
  char host[16];
  assert_int_equal(launcher_first_host("a,b", host, sizeof host), 0);
  assert_string_equal(host, "a");
  assert_int_equal(launcher_first_host("n[1-4],x", host, sizeof host), 0);
  assert_string_equal(host, "n1");
  assert_int_equal(launcher_first_host("n[01,7]-ib,x", host, sizeof host), 0);
  assert_string_equal(host, "n01-ib");
  assert_int_not_equal(launcher_first_host("", host, sizeof host), 0);
  assert_int_not_equal(launcher_first_host("n[1", host, sizeof host), 0);
  assert_int_not_equal(launcher_first_host("n[x],y", host, sizeof host), 0);
  assert_int_not_equal(launcher_first_host("n[1-2]r[1-2]", host, sizeof host), 0);
  assert_int_not_equal(launcher_first_host("averyverylongname1", host, sizeof host), 0);
}
