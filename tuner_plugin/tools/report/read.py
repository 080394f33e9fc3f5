# SPDX-License-Identifier: Apache-2.0
"""Files into sources: which format is this, and limits for all of them."""
import hashlib
import os

import redact
from points import OPERATIONS, Source, operation_of
from problem import Problem
from read_json import is_coll, is_nccl_tests, read_coll, read_nccl_tests
from read_profile import looks_like_profile, read_profile
from read_samples import looks_like_samples, read_samples
from read_text import looks_like_table, read_text
from read_verification import is_verification, read_verification
from strict_json import Document, NoJson, close_cut

FILE_MAX = 256 << 20
POINTS_MAX = 500_000
ACCEPTED = "text or JSON (-J) of nccl-tests, text or JSON of stratus-coll, samples.jsonl, a profile, the JSON of " \
           "`stratus-tune verify-ab`"
# Which JSON it is -> who reads it.
JSON_FORMATS = ((is_coll, read_coll), (is_verification, read_verification))
# The first columns of what rccl-tests write to a file (-x), and their names in its JSON.
RCCL_HEADING = "numCycle,name,size,"
RCCL_ADVICE = "the file that rccl-tests write with -x (-Z csv, -Z json), which is not read: give the table that they print"


def is_rccl(value):
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "numCycle" in value[0]


def split_label(argument):
    """"LABEL=FILE", or a file as it is."""
    label, equals, path = argument.partition("=")
    if equals and label and path and "/" not in label and not os.path.exists(argument):
        return redact.text(label), path
    return "", argument


def whole(data):
    """Without the zeros at the end of a file whose machine stopped while it was written."""
    return data.rstrip(b"\0")


def load(path):
    """The bytes of a file, or of standard input for "-"."""
    try:
        file = os.fdopen(os.dup(0), "rb") if path == "-" else open(path, "rb")  # pylint: disable=consider-using-with
        with file:
            data = file.read(FILE_MAX + 1)
    except OSError as error:
        raise Problem(f"cannot be read: {error.strerror}", path) from None
    if len(data) > FILE_MAX:
        raise Problem(f"is larger than {FILE_MAX >> 20} MiB", path)
    if not whole(data).strip():
        raise Problem("is empty", path)
    if b"\0" in whole(data)[:4096]:
        raise Problem(f"is no text. Accepted: {ACCEPTED}", path)
    return data


def operation_in_name(path):
    """all_reduce in all_reduce_perf.txt and 4n-all_reduce.log."""
    name = os.path.basename(path).lower().replace("-", "_")
    for word in sorted(("all_reduce", "all_gather", "reduce_scatter", *OPERATIONS), key=len, reverse=True):
        if word in name:
            return operation_of(word)
    return None


def read_source(argument, operation=None, tool=None):
    """Reads one input. `operation`: the collective of tables that do not name it; `tool`: path of stratus-tune."""
    label, path = split_label(argument)
    data = load(path)
    source = Source(path=path, label=label, sha256=hashlib.sha256(data).hexdigest())
    text = whole(data).decode("utf-8", errors="replace").removeprefix("\ufeff")
    if zeros := len(data) - len(whole(data)):
        source.notes.append(f"left out: {zeros} zero bytes at the end: did its machine stop? What was there is lost")
    read_content(source, text, operation or operation_in_name(path), tool)
    if len(source.points) > POINTS_MAX:
        raise Problem(f"has more than {POINTS_MAX} measurements", path)
    source.label = source.label or redact.text(os.path.basename(path).rsplit(".", 1)[0] or path)
    return source


def read_content(source, text, operation, tool):
    if looks_like_samples(text):
        read_samples(source, text)
    elif text.lstrip().startswith(("{", "[")) and not looks_like_table(text):
        read_json(source, whole_document(source, text), operation)
    elif looks_like_profile(text):
        read_profile(source, tool)
    elif looks_like_table(text):
        read_text(source, text, operation)
    elif text.lstrip().startswith(RCCL_HEADING):
        raise Problem(RCCL_ADVICE, source.path, 1)
    else:
        raise Problem(f"unknown format. Accepted: {ACCEPTED}", source.path, 1)


def whole_document(source, text):
    """Of a run that was stopped while it wrote its results: those that are whole."""
    try:
        return Document(source.path, text)
    except NoJson as problem:
        closed = close_cut(text, "results")
        document = closed and Document(source.path, closed)
        if not document or not is_nccl_tests(document.root.value):  # others write theirs at once
            raise
        count = len(document.root.value["results"])
        source.notes.append(f"{problem.text}, in line {problem.line}: was the run stopped? Its {count} whole results before are "
                            "read")
        return document


def read_json(source, document, operation):
    value = document.root.value
    if is_nccl_tests(value):
        read_nccl_tests(source, document, operation)
    else:
        reader = next((reader for is_it, reader in JSON_FORMATS if is_it(value)), None)
        if reader is None and is_rccl(value):
            raise Problem(RCCL_ADVICE, source.path, 1)
        if reader is None:
            raise Problem(f"JSON of an unknown kind. Accepted: {ACCEPTED}", source.path, 1)
        reader(source, document)
    if not source.points and not source.sections:
        raise Problem("has no measurement: did the run fail?", source.path)
