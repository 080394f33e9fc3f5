# SPDX-License-Identifier: Apache-2.0
"""Reads what a tool prints for -h into tables, for the man pages, the completions and their test.

-h is printed from the tables that the tool parses its command line by, so nothing that is made from these can
name an option that the tool does not have, or miss one."""

import os
import re
import subprocess
from dataclasses import dataclass, field

TOOLS = ("stratus-net", "stratus-tune", "stratus-run", "stratus-env")

OPTION = re.compile(r"  (?:-(\w), |    )--([\w-]+)(?: (\S+))?(?: {2,}(\S.*))?")
COMMAND = re.compile(r"  (\S+) {2,}(\S.*)")


@dataclass
class Option:
    letter: str    # "" if there is no short form
    name: str      # without dashes
    argument: str  # what -h calls it; "" for a flag
    help: str

    def words(self):
        """The values that -h lists, as in auto|html; empty if any value will do."""
        return self.argument.split("|") if re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)+", self.argument) else []

    def wants_file(self):
        return bool(re.search(r"FILE|PATH|DIR", self.argument))

    def spellings(self):
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{self.name}"]


@dataclass
class Command:
    name: str       # "" for a tool without commands
    usage: str      # behind the name, as in "[options] FILE..."
    summary: str
    options: list = field(default_factory=list)
    examples: list = field(default_factory=list)


@dataclass
class Tool:
    name: str
    commands: list     # one with the name "" if the tool has no commands
    has_commands: bool
    exit_status: list  # (number, meaning)


def run_help(path, *words):
    """What the tool prints; variables of this session must not show in defaults."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STRATUS_")}
    return subprocess.run([os.path.abspath(path), *words], check=True, env=environment, stdout=subprocess.PIPE,
                          text=True).stdout


def read_examples(lines):
    """Command lines; a remark behind one, after several blanks, is left out."""
    return [re.split(r" {3,}", line.strip())[0] for line in lines if line.startswith("  ")]


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


def read_command(text, tool, name):
    usage = re.match(rf"usage: {tool} ?{name} ?(.*)\n\n", text)
    paragraphs = text[usage.end():].split("\n\n")
    options = paragraphs[1] if not name else "\n".join(section(text, "option"))
    return Command(name, usage[1], " ".join(paragraphs[0].split()), read_options(options.split("\n")),
                   read_examples(section(text, "example")))


def read_tool(directory, name):
    path = os.path.join(directory, name)
    text = run_help(path, "-h")
    listed = [COMMAND.fullmatch(line) for line in section(text, "command")]
    commands = [read_command(run_help(path, match[1], "-h"), name, match[1]) for match in listed]
    status = re.search(r"^exit status: (.*)$", text, re.MULTILINE)[1]
    return Tool(name, commands or [read_command(text, name, "")], bool(listed),
                [tuple(part.strip().split(" ", 1)) for part in re.split(r"[,;] (?=\d )", status)])
