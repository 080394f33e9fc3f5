# SPDX-License-Identifier: Apache-2.0
"""Which format a file has; limits for all of them."""
import gzip
import os
import zlib

from chakra import is_chakra, is_named_chakra
from mend import mend, put_right
from problem import Problem, lines_text
from read_chakra import is_groups, read_chakra, read_groups
from read_execution import is_execution, read_execution
from read_inspector import is_inspector, read_inspector
from read_profiler import is_profiler, read_profiler
from read_sequence import is_record, read_record
from read_simai import is_simai, read_simai
from strict_json import LENIENT, Cut, Document

# Looked at for a format with one object a line; the longest is of STRATUS_RECORD, 8192 calls of 40 bytes.
FIRST_LINES, FIRST_LINE_MAX = 8, 1 << 20
FILE_MAX = 1 << 30  # bytes, unpacked
ACCEPTED = "traces of PyTorch's profiler (Kineto's JSON), PyTorch's execution traces, .calls files of STRATUS_RECORD, " \
           "JSON of NCCL Inspector, Chakra's .et, SimAI's workload text; each also in .gz"


def read_content(path):
    if os.path.isdir(path):
        raise Problem("is a directory: name the file of one rank", path)
    try:
        with open(path, "rb") as file:
            content = file.read(FILE_MAX + 1)
        if content[:2] == b"\x1f\x8b":
            with gzip.open(path, "rb") as file:
                content = file.read(FILE_MAX + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Problem(f"cannot be unpacked, the file is cut or damaged: {error}", path) from None
    except OSError as error:
        raise Problem(error.strerror, path) from None
    if len(content) > FILE_MAX:
        raise Problem(f"more than {FILE_MAX >> 20} MiB: record fewer steps", path)
    return content


def is_chakra_file(path, content):
    """By its contents; by its name where these are damaged. JSON may have any name."""
    return is_chakra(content) or is_named_chakra(path) and content != b"" and content[:64].lstrip()[:1] not in (b"{", b"[")


def text_of(path, content):
    content = content.rstrip(b"\0")  # of a file whose machine stopped while it was written
    if b"\0" in content:
        raise Problem(f"is no text: byte {content.index(0)} is zero", path)
    return content.decode("utf-8", errors="replace").removeprefix("\ufeff")  # names may be anything


def first_line(text):
    """The value of the first line that is one alone; so are the formats with one object a line told, also where the first lines
    are cut."""
    for line in text.split("\n", FIRST_LINES)[:FIRST_LINES]:
        if len(line) > FIRST_LINE_MAX:
            continue
        try:
            value = LENIENT.decode(put_right(line))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and (is_record(value) or is_inspector(value) or "median_us" in value):
            return value
    return None


def read_trace(path, options):
    content = read_content(path)
    if is_chakra_file(path, content):
        return read_chakra(path, content, options)
    text = text_of(path, content)
    if not text.strip():
        raise Problem("is empty", path, 1)
    if is_simai(text):
        return read_simai(path, text)
    first = first_line(text)
    if is_record(first):
        return read_record(path, text, options)
    if is_inspector(first):
        return read_inspector(path, text, options)
    if first:
        raise Problem("has times of calls for `stratus-tune suggest`, not their sequence: that is in the .calls file beside it "
                      "(stratus 0.1.0 and older wrote none)", path)
    document, lost = read_document(path, text)
    value = document.root.value
    if is_profiler(value):
        timeline = read_profiler(document, options)
        if lost:
            timeline.notes.append(f"left out: {lines_text(lost)}: events that are no JSON, and not needed")
        return timeline
    if is_execution(value):
        return read_execution(document, options)
    if is_groups(value):
        return read_groups(path, document.root)
    raise Problem(f"unknown format. Accepted: {ACCEPTED}", path)


def read_document(path, text):
    """(the document, lines of events that had to be taken out of it)."""
    try:
        return Document(path, text, decoder=LENIENT), []
    except Problem as problem:
        mended, lost = mend(path, text)
        try:
            if mended != text:
                return Document(path, mended, decoder=LENIENT), lost
        except Problem as left:
            problem = left
        if isinstance(problem, Cut):
            problem.text += ": whoever wrote it was stopped, and steps may be incomplete; record it again"
        raise problem from None
