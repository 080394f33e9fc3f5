# SPDX-License-Identifier: Apache-2.0
"""Which format a file has; limits for all of them."""
import gzip
import json
import os
import zlib

from problem import Problem
from read_execution import is_execution, read_execution
from read_profiler import is_profiler, read_profiler
from read_sequence import is_inspector, is_record, read_inspector, read_record
from strict_json import Document

FILE_MAX = 1 << 30  # bytes, unpacked
ACCEPTED = "traces of PyTorch's profiler (Kineto's JSON), PyTorch's execution traces, .calls files of STRATUS_RECORD, " \
           "JSON of NCCL Inspector; each also in .gz"


def read_text(path):
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
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(f"is no text: byte {error.start} is no UTF-8", path) from None


def first_line(text):
    """The value of the first line alone, where that is one; so are the formats with one object a line told."""
    try:
        return json.loads(text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return None


def read_trace(path, options):
    if os.path.isdir(path):
        raise Problem("is a directory: name the file of one rank", path)
    text = read_text(path)
    if not text.strip():
        raise Problem("is empty", path)
    first = first_line(text)
    if is_record(first):
        return read_record(path, text, options)
    if is_inspector(first):
        return read_inspector(path, text, options)
    if isinstance(first, dict) and "median_us" in first:
        raise Problem("has times of calls for `stratus-tune suggest`, not their sequence: that is in the .calls file beside it "
                      "(stratus 0.1.0 and older wrote none)", path)
    document = Document(path, text)
    value = document.root.value
    if is_profiler(value):
        return read_profiler(document, options)
    if is_execution(value):
        return read_execution(document, options)
    raise Problem(f"unknown format. Accepted: {ACCEPTED}", path)
