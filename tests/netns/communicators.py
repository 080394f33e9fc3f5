#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of stock NCCL on the emulated GPU that makes communicators when it is told to.

usage: communicators.py RANK RANKS DIRECTORY

Reads lines: `make` makes a communicator and reduces over it, `close` closes the oldest. Answers each with a line,
"N made in 0.5 s" or "N failed after 1.0 s: ...". DIRECTORY is shared by the ranks.
"""

import ctypes
import os
import sys
import time

ELEMENTS = 1 << 16
FLOAT, SUM = 7, 0  # ncclFloat, ncclSum


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Failed(Exception):
    pass


def load():
    cuda, nccl = ctypes.CDLL("libcudart.so", ctypes.RTLD_GLOBAL), ctypes.CDLL("libnccl.so.2")
    nccl.ncclGetErrorString.restype = ctypes.c_char_p
    return cuda, nccl


def check(nccl, result):
    if result:
        raise Failed(nccl.ncclGetErrorString(result).decode())


def unique_id(nccl, rank, path):
    """Rank 0 draws it, the others read it."""
    name = UniqueId()
    if rank == 0:
        check(nccl, nccl.ncclGetUniqueId(ctypes.byref(name)))
        with open(path + ".new", "wb") as file:
            file.write(bytes(name))
        os.rename(path + ".new", path)
    else:
        while not os.path.exists(path):
            time.sleep(0.01)
        with open(path, "rb") as file:
            ctypes.memmove(ctypes.byref(name), file.read(), ctypes.sizeof(name))
    return name


def reduce(cuda, nccl, comm, rank, ranks):
    data = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(data), ctypes.c_size_t(4 * ELEMENTS))
    values = (ctypes.c_float * ELEMENTS)(*([rank + 1.0] * ELEMENTS))
    cuda.cudaMemcpy(data, values, ctypes.c_size_t(4 * ELEMENTS), 4)
    check(nccl, nccl.ncclAllReduce(data, data, ctypes.c_size_t(ELEMENTS), FLOAT, SUM, comm, None))
    error = ctypes.c_int()
    while cuda.cudaStreamQuery(None):
        check(nccl, nccl.ncclCommGetAsyncError(comm, ctypes.byref(error)))
        check(nccl, error.value)
        time.sleep(0.001)
    cuda.cudaMemcpy(values, data, ctypes.c_size_t(4 * ELEMENTS), 4)
    cuda.cudaFree(data)
    if any(value != ranks * (ranks + 1) / 2 for value in values):
        raise Failed("wrong values")


def main():
    rank, ranks, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    cuda, nccl = load()
    open_ones, made = [], 0
    for line in sys.stdin:
        if line.strip() == "close":
            check(nccl, nccl.ncclCommDestroy(open_ones.pop(0)))
            print("closed", flush=True)
            continue
        start, comm, made = time.monotonic(), ctypes.c_void_p(), made + 1
        try:
            name = unique_id(nccl, rank, f"{directory}/id{made}")
            check(nccl, nccl.ncclCommInitRank(ctypes.byref(comm), ranks, name, rank))
            reduce(cuda, nccl, comm, rank, ranks)
            open_ones.append(comm)
            print(f"{made} made in {time.monotonic() - start:.1f} s", flush=True)
        except Failed as why:
            print(f"{made} failed after {time.monotonic() - start:.1f} s: {why}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
