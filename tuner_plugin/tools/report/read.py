# SPDX-License-Identifier: Apache-2.0
"""Files into sources: which format is this, and limits for all of them."""
import hashlib
import os

import redact
from points import OPERATIONS, Source, operation_of
from problem import Problem
from read_bench import is_bench, read_bench
from read_calibration import is_calibration, is_verification, read_calibration, read_verification
from read_demo import is_demo, read_demo
from read_json import is_coll, is_nccl_tests, read_coll, read_nccl_tests
from read_perf import is_perf, read_perf
from read_probe import is_probe, read_probe
from read_profile import looks_like_profile, read_profile
from read_samples import looks_like_samples, read_samples
from read_stats import is_stats, looks_like_stats_stream, read_stats, read_stats_stream
from read_text import PREFIX, looks_like_table, read_text
from strict_json import Document

FILE_MAX = 256 << 20
POINTS_MAX = 500_000
ACCEPTED = "text or JSON (-J) of nccl-tests, text or JSON of stratus-coll, samples.jsonl, a profile, the JSON of " \
           "`stratus-net perf`, `probe` and `stats` and of `stratus-tune verify-ab`, and of scripts/demo, scripts/bench and " \
           "scripts/calibrate-demo"
# Which JSON it is -> who reads it.
JSON_FORMATS = ((is_coll, read_coll), (is_demo, read_demo), (is_bench, read_bench), (is_perf, read_perf),
                (is_probe, read_probe), (is_calibration, read_calibration), (is_verification, read_verification),
                (is_stats, lambda source, document: read_stats(source, [document])))


def split_label(argument):
    """"LABEL=FILE", or a file as it is."""
    label, equals, path = argument.partition("=")
    if equals and label and path and "/" not in label and not os.path.exists(argument):
        return redact.text(label), path
    return "", argument


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
    if not data.strip():
        raise Problem("is empty", path)
    if b"\0" in data[:4096]:
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
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    read_content(source, text, operation or operation_in_name(path), tool)
    if len(source.points) > POINTS_MAX:
        raise Problem(f"has more than {POINTS_MAX} measurements", path)
    source.label = source.label or redact.text(os.path.basename(path).rsplit(".", 1)[0] or path)
    return source


def read_content(source, text, operation, tool):
    if looks_like_samples(text):
        read_samples(source, text)
    elif looks_like_stats_stream(text):
        read_stats_stream(source, text)
    elif text.lstrip().startswith(("{", "[")) and not PREFIX.match(text):
        read_json(source, Document(source.path, text), operation)
    elif looks_like_profile(text):
        read_profile(source, tool)
    elif looks_like_table(text):
        read_text(source, text, operation)
    else:
        raise Problem(f"unknown format. Accepted: {ACCEPTED}", source.path, 1)


def read_json(source, document, operation):
    value = document.root.value
    if is_nccl_tests(value):
        read_nccl_tests(source, document, operation)
    else:
        reader = next((reader for is_it, reader in JSON_FORMATS if is_it(value)), None)
        if reader is None:
            raise Problem(f"JSON of an unknown kind. Accepted: {ACCEPTED}", source.path, 1)
        reader(source, document)
    if not source.points and not source.probe and not source.sections:
        raise Problem("has no measurement: did the run fail?", source.path)
