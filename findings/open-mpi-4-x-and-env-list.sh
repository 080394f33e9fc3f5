#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Open MPI 4.1.4 (Debian bookworm, openmpi-bin 4.1.4-3+b1), mpirun.
#
# Expected: a variable is handed on to the ranks by -x, others by the MCA parameter mca_base_env_list. Who has both, the one
# on the command line and the other in the environment or in ~/.openmpi/mca-params.conf, gets both sets.
# Seen: mpirun ends with status 1 before it starts a rank: "attempted to pass environment variables to Open MPI with both
# the "-x" method and by setting the MCA parameter". Each of the two alone works. So a wrapper, or a site's file of
# parameters, that sets the one breaks every command line that has the other.
#
# Run as root: it makes a bookworm in a temporary folder (170 MB, signatures verified). Exit status: 0 it is as described,
# 1 it is not, 77 the mirror has another version.
set -eu
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
trap 'rm -rf --one-file-system "$temporary"' EXIT
root=$temporary/root
tests/package/chroot make bookworm "$root" openmpi-bin >/dev/null
# shellcheck disable=SC2016 # a variable of dpkg-query's
version=$(tests/package/chroot run "$root" dpkg-query -W -f '${Version}' openmpi-bin)
if [ "$version" != 4.1.4-3+b1 ]; then
  echo "openmpi-bin is $version, not 4.1.4-3+b1"
  exit 77
fi

mpirun() { # ENVIRONMENT OPTION...: what it prints; its exit status
  environment=$1
  shift
  # shellcheck disable=SC2086 # no setting, or one
  tests/package/chroot run "$root" env FIRST=1 SECOND=2 OMPI_MCA_btl=self $environment mpirun --allow-run-as-root \
    --oversubscribe -np 1 "$@" env 2>&1
}

has() { # NAME TEXT
  case $2 in *"$1"*) ;; *)
    echo "this is not as described, no $1 in: $2"
    exit 1
    ;;
  esac
}

has FIRST=1 "$(mpirun '' -x FIRST)"
has SECOND=2 "$(mpirun OMPI_MCA_mca_base_env_list=SECOND)"
if both=$(mpirun OMPI_MCA_mca_base_env_list=SECOND -x FIRST); then
  echo "this is not as described: both together work: $both"
  exit 1
fi
has 'does not support mixing' "$both"
echo "as described: openmpi-bin $version takes -x, and takes mca_base_env_list, and ends where it has both"
