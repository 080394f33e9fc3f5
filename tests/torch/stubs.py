#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Libraries in the place of those that PyTorch links with, which the emulated GPU has not: each function ends the process and says
its name, as nobody calls one; those of markers do nothing.

usage: stubs.py ROOT OUT     ROOT: a Debian with PyTorch; what it imports says what there has to be"""
import glob
import os
import re
import subprocess
import sys

PYTORCH = r"lib(c10|caffe2|gloo|shm|tensorpipe|torch)"
EMULATED = {"libcuda.so.1", "libcudart.so.12", "libnvidia-ml.so.1", "libnccl.so.2"}  # tests/fake_cuda
MARKERS = "libnvToolsExt.so.1"
# Those without versions of their own: whose a name is.
UNVERSIONED = {"MPI_": "libmpi.so.40", "ompi_": "libmpi.so.40"}
OBJECTS = "ompi_"  # are no functions
CODE = """#include <stdio.h>
#include <stdlib.h>
static inline long refuse(const char *name) { fprintf(stderr, "%s is not emulated\\n", name); abort(); }
"""


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def imports(library):
    """Of each library that this one needs, {(symbol, version)}."""
    versions, file, needed = {}, "", {}
    for line in said_by("readelf", "-WdV", library).splitlines():
        if found := re.search(r"\(NEEDED\).*\[(.*)\]", line):
            needed[found[1]] = set()
        elif found := re.search(r"File: (\S+)", line):
            file = found[1]
        elif found := re.search(r"Name: (\S+)\s+Flags", line):
            versions[found[1]] = file
    for line in said_by("nm", "-D", "--undefined-only", "--with-symbol-versions", library).splitlines():
        symbol, _, version = line.split()[-1].partition("@")
        owner = versions.get(version) or next((file for prefix, file in UNVERSIONED.items() if symbol.startswith(prefix)), None)
        if owner in needed:
            needed[owner].add((symbol, version))
    return needed


def make(file, symbols, out):
    path = os.path.join(out, file)
    version = max((version for _, version in symbols), default="")
    with open(f"{path}.c", "w", encoding="utf-8") as code:
        code.write(CODE)
        for symbol, _ in sorted(symbols):
            if symbol.startswith(OBJECTS):
                code.write(f"char {symbol}[4096];\n")
            else:
                result = "0" if file == MARKERS else f'refuse("{symbol}")'
                code.write(f"long {symbol}(void) {{ return {result}; }}\n")
    with open(f"{path}.map", "w", encoding="utf-8") as names:
        names.write(f"{version} {{ global: *; }};\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, f"{path}.c", f"-Wl,-soname,{file},--version-script={path}.map"], check=True)
    os.remove(f"{path}.c")
    os.remove(f"{path}.map")


def main():
    root, out = sys.argv[1:]
    libraries = glob.glob(f"{root}/usr/lib*/**/*.so*", recursive=True)
    there, wanted = {os.path.basename(path) for path in libraries} | EMULATED, {}
    for library in libraries:
        if re.match(PYTORCH, os.path.basename(library)) and not os.path.islink(library):
            for file, symbols in imports(library).items():
                if file not in there:
                    wanted.setdefault(file, set()).update(symbols)
    os.makedirs(out, exist_ok=True)
    for file, symbols in wanted.items():
        make(file, symbols, out)


main()
