# SPDX-License-Identifier: Apache-2.0
"""Reads what `stratus` prints for -h into tables, for the man page and its test.

-h is printed from the tables that the command line is parsed by, so nothing that is made from these can name an option
that there is not, or miss one."""

import os
import re
import subprocess
from dataclasses import dataclass, field

OPTION = re.compile(r"  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?: {2,}(\S.*))?")
COMMAND = re.compile(r"  (\S+) {2,}(\S.*)")


@dataclass
class Option:
    letter: str    # "" if there is no short form
    name: str      # without dashes
    argument: str  # what -h calls it; "" for a flag
    help: str

    def words(self):
        """The values that -h lists, as in auto|on; empty if any value will do."""
        return self.argument.split("|") if re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)+", self.argument) else []

    def spellings(self):
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{self.name}"]


@dataclass
class Command:
    name: str
    usage: str        # behind the name, as in "[options] FILE..."
    summary: str
    options: list = field(default_factory=list)
    examples: list = field(default_factory=list)
    exit_status: str = ""  # "" if it has those of all


def run_help(stratus, *words):
    """What it prints; variables of this session must not show in defaults."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STRATUS_")}
    return subprocess.run([os.path.abspath(stratus), *words], check=True, env=environment, stdout=subprocess.PIPE,
                          text=True).stdout


def read_options(lines):
    options = []
    for line in lines:
        match = OPTION.fullmatch(line)
        if match:
            options.append(Option(match[1] or "", match[2], match[3] or "", match[4] or ""))
        elif options and line.startswith(" " * 20):
            options[-1].help = f"{options[-1].help} {line.strip()}".strip()
    return options


def section(text, title):
    """The lines below "title:" up to the next empty one."""
    match = re.search(rf"^{title}s?:\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1].rstrip("\n").split("\n") if match else []


def read_exit_status(text):
    match = re.search(r"^exit status: (.*)$", text, re.MULTILINE)
    return match[1] if match else ""


def read_command(text, name):
    usage = re.match(rf"usage: stratus {name} (.*)\n\n", text)
    paragraphs = text[usage.end():].split("\n\n")
    examples = [line.strip() for line in section(text, "example") if line.startswith("  ")]
    return Command(name, usage[1], " ".join(paragraphs[0].split()), read_options(section(text, "option")), examples,
                   read_exit_status(text))


def read(stratus):
    """The subcommands, and the exit statuses of all in one line."""
    text = run_help(stratus, "-h")
    listed = [COMMAND.fullmatch(line)[1] for line in section(text, "command")]
    return [read_command(run_help(stratus, name, "-h"), name) for name in listed], read_exit_status(text)
