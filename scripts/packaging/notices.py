# SPDX-License-Identifier: Apache-2.0
"""The file `copyright` of a package: our licence, and of each library that is linked statically into what we ship, as the linker
wrote it into its maps, the version of the package that it came from and the notice that its licence wants to be passed on."""
import gzip
import os
import re

from facts import NAME, Problem, run

# Archives and objects: the Debian packages that have them, and whether binary packages must have their notice. What libgcc and
# glibc link into a program may be passed on in any way.
KNOWN = (
    (("libhwloc.a",), "libhwloc-dev", True),
    (("libjansson.a",), "libjansson-dev", True),
    (("libgcc.a", "crtbegin.o", "crtbeginS.o", "crtend.o", "crtendS.o"), r"libgcc-\d+-dev.*", False),
    (("libc_nonshared.a", "crt1.o", "Scrt1.o", "crti.o", "crtn.o"), r"libc6-dev.*", False))


def original(path):
    """The library that an archive was made from, if the Makefile says so beside it."""
    try:
        with open(path + ".from", encoding="utf-8") as file:
            return os.path.realpath(file.read().strip())
    except OSError:
        return path


def linked_files(map_path, own):
    """Paths of archives and objects that gave code to a program, from its map; not those below `own`."""
    with open(map_path, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"^(\S+\.a)\(\S+\)", text.split("\nMemory Configuration", 1)[0], re.MULTILINE)
    found += re.findall(r"^LOAD (\S+\.o)$", text, re.MULTILINE)
    paths = {original(os.path.abspath(each)) for each in found}
    return {each for each in paths if not each.startswith(os.path.abspath(own) + "/")}


def origin(path, pattern):
    """(package, version, its documents) of a file of this machine, or of a package that is unpacked below some directory."""
    for each in (path, path.replace("/usr/lib/", "/lib/", 1)):
        try:
            package = run("dpkg-query", "--search", each).split(":")[0]
        except Problem:
            continue
        if not re.fullmatch(pattern, package):
            raise Problem(f"{path} is part of {package}, expected was {pattern}")
        return package, run("dpkg-query", "--show", "--showformat=${Version}\n", package).split("\n")[0], f"/usr/share/doc/{package}"
    documents = os.path.join(path.split("/usr/lib/", 1)[0], "usr/share/doc", pattern)
    try:
        with gzip.open(os.path.join(documents, "changelog.Debian.gz"), "rt", encoding="utf-8") as file:
            return pattern, re.match(r"\S+ \((\S+)\)", file.readline())[1], documents
    except OSError:
        raise Problem(f"{path}: no package of this machine has it, and it is not part of an unpacked one") from None


def write(facts, build, root, directory):
    linked, named = set(), set()
    for path in facts.elf_files:
        map_path = os.path.join(build, "obj", os.path.basename(path) + ".map")
        if not os.path.exists(map_path):
            raise Problem(f"the linker left no {map_path}: {path} was not linked with LINK_MAP of the Makefile")
        linked |= linked_files(map_path, os.path.join(build, "obj"))
    for path in linked:
        row = next((row for row in KNOWN if os.path.basename(path) in row[0]), None)
        if not row:
            raise Problem(f"{path} is linked statically, and scripts/packaging/notices.py does not know its licence: add a row")
        if row[2]:
            named.add(origin(path, row[1]))
    with open(os.path.join(root, "LICENSE"), encoding="ascii") as file:
        parts = [f"{NAME} is licensed as follows.\n\n{file.read()}"]
    for package, version, documents in sorted(named):
        with open(os.path.join(documents, "copyright"), encoding="utf-8") as file:
            parts.append(f"It contains a library of Debian's {package} {version}, which is licensed as follows.\n\n{file.read()}")
    with open(os.path.join(directory, "copyright"), "w", encoding="utf-8") as file:
        file.write(f"\n{'-' * 78}\n\n".join(parts))
