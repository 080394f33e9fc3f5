# SPDX-License-Identifier: Apache-2.0
"""Checks a software bill of materials against the rules of CycloneDX 1.5 that concern it, and against the files that it
describes.

usage: check_sbom.py PREFIX SBOM [SCHEMAS]      exits 1 with what is wrong

  SCHEMAS    CycloneDX's own schemas, a directory; then also against them, by Debian's python3-jsonschema"""
import glob
import hashlib
import json
import os
import re
import sys

TOP = {"$schema", "bomFormat", "specVersion", "version", "serialNumber", "metadata", "components", "dependencies"}
COMPONENT = {"type", "bom-ref", "name", "version", "description", "hashes", "licenses", "purl", "properties"}
# Of SPDX's list, those that may occur.
LICENCES = {"Apache-2.0", "BSD-3-Clause", "ISC", "MIT"}
EXPRESSION = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
PURL = re.compile(r"pkg:[a-z]+/([a-z0-9.-]+/)?[A-Za-z0-9.%-]+@[A-Za-z0-9.%~-]+")
UUID = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

problems = []


def must(is_so, what):
    if not is_so:
        problems.append(what)


def check_licences(entry, name):
    licences = entry.get("licenses", [])
    must(len(licences) == 1, f"{name}: one licence is wanted")
    for each in licences:
        if "expression" in each:
            must(each.keys() == {"expression"} and EXPRESSION.fullmatch(each["expression"]), f"{name}: {each}")
        else:
            inner = each.get("license", {})
            must(each.keys() == {"license"} and len(inner) == 1, f"{name}: {each}")
            must(inner.get("id") in LICENCES or inner.get("name"), f"{name}: no licence of SPDX's list: {inner}")


def check_component(entry):
    name = entry.get("name", "?")
    must(entry.keys() <= COMPONENT, f"{name}: unknown keys {entry.keys() - COMPONENT}")
    must(entry.get("type") in ("application", "library"), f"{name}: type {entry.get('type')}")
    for key in ("name", "version", "bom-ref"):
        must(isinstance(entry.get(key), str) and entry[key], f"{name}: no {key}")
    must("purl" not in entry or PURL.fullmatch(entry["purl"]), f"{name}: purl {entry.get('purl')}")
    for each in entry.get("hashes", []):
        must(each.keys() == {"alg", "content"} and each["alg"] == "SHA-256" and re.fullmatch(r"[0-9a-f]{64}", each["content"]),
             f"{name}: {each}")
    for each in entry.get("properties", []):
        must(each.keys() == {"name", "value"} and all(isinstance(text, str) for text in each.values()), f"{name}: {each}")
    check_licences(entry, name)


def check_document(bom):
    must(bom.keys() == TOP, f"keys: {sorted(bom.keys() ^ TOP)}")
    must((bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1), "not CycloneDX 1.5")
    must(UUID.fullmatch(bom["serialNumber"]), f"serial number {bom['serialNumber']}")
    must(TIME.fullmatch(bom["metadata"]["timestamp"]), f"time {bom['metadata']['timestamp']}")
    must(bom["metadata"].keys() == {"timestamp", "component", "properties"}, "keys of metadata")
    entries = [bom["metadata"]["component"], *bom["components"]]
    for each in entries:
        check_component(each)
    references = [each["bom-ref"] for each in entries]
    must(len(set(references)) == len(references), "a bom-ref occurs twice")
    must(sorted(each["ref"] for each in bom["dependencies"]) == sorted(references), "not one row of dependencies for each component")
    for each in bom["dependencies"]:
        must(each.keys() <= {"ref", "dependsOn"} and set(each.get("dependsOn", [])) <= set(references), f"dependencies: {each}")


def check_files(bom, prefix):
    """Every program and library is in it, with its hash."""
    hashes = {each["bom-ref"]: each["hashes"][0]["content"] for each in bom["components"] if "hashes" in each}
    for where, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                content = file.read()
            if content[:4] == b"\x7fELF" and not os.path.islink(path):
                must(hashes.pop(os.path.relpath(path, prefix), None) == hashlib.sha256(content).hexdigest(), f"the hash of {path}")
    must(not hashes, f"there is no {', '.join(hashes)}")


def check_contents(bom, prefix):
    """Who has code of a library in it says so: each leaves a text of its own."""
    uses = {each["ref"]: set(each.get("dependsOn", [])) for each in bom["dependencies"]}
    for reference in (each["bom-ref"] for each in bom["components"] if "hashes" in each):
        with open(os.path.join(prefix, reference), "rb") as file:
            content = file.read()
        for library, text in {"jansson": b"unable to decode byte 0x%x", "hwloc": b"HWLOC_XMLFILE"}.items():
            must((text in content) == (library in uses[reference]), f"{reference}: is {library} in it?")
        must({"glibc", "libgcc"} <= uses[reference], f"{reference}: no start files")


def check_schema(bom, directory):
    import jsonschema  # pylint: disable=import-outside-toplevel
    store = {}
    for path in glob.glob(os.path.join(directory, "*.schema.json")):
        with open(path, encoding="utf-8") as file:
            store[f"http://cyclonedx.org/schema/{os.path.basename(path)}"] = json.load(file)
    schema = next(each for path, each in store.items() if "/bom-1.5." in path)
    resolver = jsonschema.RefResolver.from_schema(schema, store=store)
    for error in jsonschema.Draft7Validator(schema, resolver=resolver).iter_errors(bom):
        must(False, f"schema: {'/'.join(map(str, error.absolute_path))}: {error.message}")


def main():
    prefix, path, *schemas = sys.argv[1:]
    with open(path, encoding="ascii") as file:
        bom = json.load(file)
    check_document(bom)
    check_files(bom, prefix)
    check_contents(bom, prefix)
    if schemas:
        check_schema(bom, schemas[0])
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
