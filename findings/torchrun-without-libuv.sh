#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# PyTorch 2.6.0 (Debian trixie, python3-torch 2.6.0+dfsg-7), which is built without libuv: init_process_group and torchrun.
#
# Expected: USE_LIBUV=0, which PyTorch's error names as the way out, counts for both.
# Seen: init_process_group works with it. torchrun starts no worker, by its static rendezvous, by c10d or by --standalone:
# "use_libuv was requested but PyTorch was build without libuv support". The stores that torchrun makes itself (TCPStore in
# torch/distributed/elastic/rendezvous/{static_tcp,c10d}_rendezvous*.py) take TCPStore's default, which is libuv. So with
# such a build a job starts by mpirun or srun, and not by torchrun.
#
# Run as root: it makes a trixie in a temporary folder (200 MB to download, 1.2 GB, signatures verified). Exit status: 0 it
# is as described, 1 it is not, 77 the mirror has another version.
set -eu
cd "$(dirname "$0")/.."
temporary=$(mktemp -d)
network=libuv-$$
trap 'ip netns del "$network" 2>/dev/null; rm -rf --one-file-system "$temporary"' EXIT
trap 'exit 1' INT TERM
root=$temporary/root
tests/package/chroot make trixie "$root" python3-torch >/dev/null
# shellcheck disable=SC2016 # a variable of dpkg-query's
version=$(tests/package/chroot run "$root" dpkg-query -W -f '${Version}' python3-torch)
if [ "$version" != 2.6.0+dfsg-7 ]; then
  echo "python3-torch is $version, not 2.6.0+dfsg-7"
  exit 77
fi
cat >"$root/rank.py" <<'END'
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("the barrier is over", flush=True)
END

starts() { # COMMAND...: what it prints, and what becomes of it. In a network of its own.
  ip netns exec "$network" timeout 60 tests/package/chroot run "$root" env USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo "$@" 2>&1 || true
}

has() { # TEXT OUTPUT
  case $2 in *"$1"*) ;; *)
    echo "this is not as described, no '$1' in: $2"
    exit 1
    ;;
  esac
}

ip netns add "$network"
ip -n "$network" link set lo up
has 'the barrier is over' "$(starts env MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=1 python3 /rank.py)"
lacks='use_libuv was requested but PyTorch was build without libuv support'
has "$lacks" "$(starts torchrun --master-addr 127.0.0.1 --master-port 29501 /rank.py)"
has "$lacks" "$(starts torchrun --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:29502 /rank.py)"
has "$lacks" "$(starts torchrun --standalone /rank.py)"
echo "as described: python3-torch $version has init_process_group without libuv, and no torchrun"
