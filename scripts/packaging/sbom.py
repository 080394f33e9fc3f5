# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials (CycloneDX 1.5): what is linked statically into each file that we ship, as the linker
wrote it into its map, with the version of the package that it came from and its licence; and the notices that these
licences want to be passed on."""
import gzip
import hashlib
import json
import os
import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

from facts import NAME, SUMMARY, Problem, run


@dataclass(frozen=True)
class Component:
    """A library that is linked statically."""
    name: str
    licence: tuple  # key and value in CycloneDX
    package: str  # pattern of the Debian packages that it is taken from
    files: tuple
    must_be_named: bool  # its licence wants its notice in binary packages


COMPONENTS = (
    Component("hwloc", ("id", "BSD-3-Clause"), "libhwloc-dev", ("libhwloc.a",), True),
    Component("jansson", ("id", "MIT"), "libjansson-dev", ("libjansson.a",), True),
    # Both allow that their code in a program is passed on in any way.
    Component("libgcc", ("expression", "GPL-3.0-or-later WITH GCC-exception-3.1"), r"libgcc-\d+-dev.*",
              ("libgcc.a", "crtbegin.o", "crtbeginS.o", "crtend.o", "crtendS.o"), False),
    Component("glibc", ("name", "LGPL-2.1-or-later with glibc's permission to link its start files"),
              r"libc6-dev.*", ("libc_nonshared.a", "crt1.o", "Scrt1.o", "crti.o", "crtn.o"), False),
)


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


def component_of(path):
    for component in COMPONENTS:
        if os.path.basename(path) in component.files:
            return component
    raise Problem(f"{path} is linked statically, and scripts/packaging/sbom.py does not know its licence: add a row")


def unpacked_version(path, component):
    """Of a package that is unpacked below some directory: what its changelog says. (package, version, its documents)"""
    documents = os.path.join(path.split("/usr/lib/", 1)[0], "usr/share/doc", component.package)
    try:
        with gzip.open(os.path.join(documents, "changelog.Debian.gz"), "rt", encoding="utf-8") as file:
            return component.package, re.match(r"\S+ \((\S+)\)", file.readline())[1], documents
    except OSError:
        raise Problem(f"{path}: no package of this machine has it, and it is not part of an unpacked one") from None


def package_version(path, component):
    """(package, version, its documents)"""
    for each in (path, path.replace("/usr/lib/", "/lib/", 1)):
        try:
            package = run("dpkg-query", "--search", each).split(":")[0]
        except Problem:
            continue
        if not re.fullmatch(component.package, package):
            raise Problem(f"{path} is part of {package}, expected was {component.package}")
        version = run("dpkg-query", "--show", "--showformat=${Version}\n", package).split("\n")[0]
        return package, version, f"/usr/share/doc/{package}"
    return unpacked_version(path, component)


def collect(facts, build):
    """{path of a shipped file: [component]}, {component: (package, version, documents)}"""
    uses, origins = {}, {}
    for path in facts.elf_files:
        map_path = os.path.join(build, "obj", os.path.basename(path) + ".map")
        if not os.path.exists(map_path):
            raise Problem(f"the linker left no {map_path}: {path} was not linked with LINK_MAP of the Makefile")
        used = set()
        for linked in sorted(linked_files(map_path, os.path.join(build, "obj"))):
            component = component_of(linked)
            used.add(component)
            origin = package_version(linked, component)
            if origins.setdefault(component, origin) != origin:
                raise Problem(f"two versions of {component.name} are linked: {origins[component]} and {origin}")
        uses[path] = sorted(used, key=lambda each: each.name)
    return uses, dict(sorted(origins.items(), key=lambda each: each[0].name))


def file_entry(facts, tree, path):
    with open(os.path.join(tree, path), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return {"type": "library" if path.endswith(".so") else "application", "bom-ref": path, "name": os.path.basename(path),
            "version": facts.version, "hashes": [{"alg": "SHA-256", "content": digest}],
            "licenses": [{"license": {"id": "Apache-2.0"}}]}


def library_entry(component, origin):
    package, version, _ = origin
    kind, value = component.licence
    licence = {kind: value} if kind == "expression" else {"license": {kind: value}}
    upstream = re.sub(r"^\d+:|[-+][^-]*$", "", version)
    return {"type": "library", "bom-ref": component.name, "name": component.name, "version": upstream,
            "licenses": [licence], "purl": f"pkg:deb/debian/{package}@{version.replace('+', '%2B')}",
            "properties": [{"name": f"{NAME}:linkage", "value": "static"}]}


def document(facts, tree, uses, origins):
    properties = {"nccl": facts.nccl, "glibc": facts.glibc, "machine": facts.machine,
                  **{f"abi:{kind}": versions for kind, versions in facts.abi.items()}}
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(facts.epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": NAME, "name": NAME, "version": facts.version, "description": SUMMARY,
                          "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": f"pkg:generic/{NAME}@{facts.version}"},
            "properties": [{"name": f"{NAME}:{name}", "value": value} for name, value in properties.items()]},
        "components": [*(file_entry(facts, tree, path) for path in uses),
                       *(library_entry(component, origin) for component, origin in origins.items())],
        "dependencies": [{"ref": NAME, "dependsOn": list(uses)},
                         *({"ref": path, "dependsOn": [each.name for each in used]} for path, used in uses.items()),
                         *({"ref": component.name} for component in origins)]}
    # The same content has the same number.
    digest = hashlib.sha256(json.dumps(bom, sort_keys=True).encode()).hexdigest()
    return {**bom, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"}


def write(facts, tree, build, root, directory):
    """sbom.cdx.json and copyright, into `directory`."""
    uses, origins = collect(facts, build)
    with open(os.path.join(directory, "sbom.cdx.json"), "w", encoding="ascii") as file:
        json.dump(document(facts, tree, uses, origins), file, indent=1)
        file.write("\n")
    with open(os.path.join(root, "LICENSE"), encoding="ascii") as file:
        parts = [f"{NAME} is licensed as follows.\n\n{file.read()}"]
    for component, (package, version, documents) in origins.items():
        if component.must_be_named:
            with open(os.path.join(documents, "copyright"), encoding="utf-8") as file:
                parts.append(f"It contains {component.name} (Debian's {package} {version}), which is licensed as follows."
                             f"\n\n{file.read()}")
    with open(os.path.join(directory, "copyright"), "w", encoding="utf-8") as file:
        file.write(f"\n{'-' * 78}\n\n".join(parts))
