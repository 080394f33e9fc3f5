# SPDX-License-Identifier: Apache-2.0
"""What a package says of itself, each fact from the one place that has it: the version and NCCL's interfaces from
common/version.h, processor and glibc from the files that are packaged, the time from git."""
import os
import re
import subprocess

NAME = "nccl-stratus"
SUMMARY = "network and tuner plugins for NCCL on cloud networks"
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))

# What readelf calls the processor: what Linux, RPM and wheels call it, and what Debian does.
PROCESSORS = {"Advanced Micro Devices X86-64": ("x86_64", "amd64"), "AArch64": ("aarch64", "arm64")}

# What is promised and tested (the Makefile's GLIBC), even if the files happen to need less.
GLIBC_FLOOR = (2, 28)


class Problem(Exception):
    """Something that the user must change; its text says what."""


def run(*words, cwd=None, environment=(), is_text=True):
    """The program's output. Its messages are English."""
    try:
        return subprocess.run(words, check=True, capture_output=True, text=is_text, cwd=cwd,
                              env={**os.environ, "LC_ALL": "C", **dict(environment)}).stdout
    except FileNotFoundError:
        raise Problem(f"there is no {words[0]}; scripts/install-deps installs it") from None
    except subprocess.CalledProcessError as error:
        raise Problem(f"{' '.join(words)} failed: {error.stderr or error.stdout}") from None


def version_header():
    """{"VERSION": "0.1.0", "NET_ABI": "v7 to v12", ...}"""
    with open(os.path.join(ROOT, "common/version.h"), encoding="ascii") as file:
        return dict(re.findall(r'^#define STRATUS_(\w+) "(.*)"$', file.read(), re.MULTILINE))


def is_git_checkout():
    try:
        return os.path.realpath(run("git", "rev-parse", "--show-toplevel", cwd=ROOT).strip()) == ROOT
    except Problem:
        return False


def source_date_epoch():
    """SOURCE_DATE_EPOCH, or when the commit was made; git gives that time to the files of a source archive, too."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        if not re.fullmatch(r"\d{1,10}", os.environ["SOURCE_DATE_EPOCH"]):
            raise Problem("SOURCE_DATE_EPOCH must be a number of seconds since 1970")
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if is_git_checkout():
        return int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))
    return int(os.stat(os.path.join(ROOT, "common/version.h")).st_mtime)


def check_changelog(version):
    """Its newest heading is this version's."""
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
        heading = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", file.read(), re.MULTILINE)
    if not heading or heading[1] != version:
        raise Problem(f"CHANGELOG.md: the first heading must be \"## {version} (unreleased)\" or have a date in place of "
                      f"the word: {version} is the version in common/version.h")


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def files_below(directory):
    """Paths of files and links, relative, in the order of bytes."""
    return sorted(os.path.relpath(os.path.join(where, name), directory)
                  for where, _, names in os.walk(directory) for name in names)


def directories_below(directory):
    return sorted(os.path.relpath(os.path.join(where, name), directory)
                  for where, names, _ in os.walk(directory) for name in names)


class Facts:
    """Of what is installed below `tree`, a prefix."""

    def __init__(self, tree):
        header = version_header()
        self.version = header["VERSION"]
        self.nccl = header["NCCL_RELEASES"]
        self.abi = {kind: header[f"{kind.upper()}_ABI"] for kind in ("net", "tuner")}
        self.epoch = source_date_epoch()
        self.elf_files = [each for each in files_below(tree) if is_elf(os.path.join(tree, each))]
        if not self.elf_files:
            raise Problem(f"{tree} has no programs: make dist fills it")
        paths = [os.path.join(tree, each) for each in self.elf_files]
        machines = set(re.findall(r"^ *Machine: *(.*)$", run("readelf", "-h", *paths), re.MULTILINE))
        if len(machines) != 1 or not machines <= PROCESSORS.keys():
            raise Problem(f"{tree} is for {', '.join(sorted(machines))}; one of these is wanted: {', '.join(PROCESSORS)}")
        self.machine, self.debian_machine = PROCESSORS[machines.pop()]
        needed = re.findall(r"@GLIBC_(\d+)\.(\d+)", run("readelf", "-W", "--dyn-syms", *paths))
        self.glibc = ".".join(map(str, max([GLIBC_FLOOR, *((int(major), int(minor)) for major, minor in needed)])))

    @property
    def triplet(self):
        """As in the names of Debian's directories and cross tools."""
        return f"{self.machine}-linux-gnu"

    def words(self):
        """What may stand between @ in a frame."""
        return {"NAME": NAME, "SUMMARY": SUMMARY, "VERSION": self.version, "NCCL": self.nccl, "GLIBC": self.glibc,
                "DEBIAN_MACHINE": self.debian_machine, "NET_ABI": self.abi["net"], "TUNER_ABI": self.abi["tuner"]}


def fill(frame, words):
    """The frame of this directory with its @WORDS@ replaced."""
    with open(os.path.join(os.path.dirname(__file__), frame), encoding="ascii") as file:
        text = file.read()
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    left = re.search(r"@[A-Z_]+@", text)
    if left:
        raise Problem(f"scripts/packaging/{frame}: there is no word {left[0]}")
    return text
