# SPDX-License-Identifier: Apache-2.0
"""stratus-tune, run as people run it, and places for files."""
import json
import os
import subprocess
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TUNE = os.path.join(ROOT, "build/bin/stratus-tune")
DATA = "tests/data/report"
LIMIT_S = 60
_scratch = tempfile.TemporaryDirectory(prefix="stratus-report-")


def clean_up():
    _scratch.cleanup()


def scratch(name):
    return os.path.join(_scratch.name, name)


def write(name, content):
    """A file of the test's own; returns its path."""
    path = scratch(name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def data(name):
    return f"{DATA}/{name}"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(*arguments, status=0, environment=None):
    """(stdout, stderr) of stratus-tune, which must end with that status."""
    done = subprocess.run([TUNE, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1785578102", **(environment or {})})
    assert done.returncode == status, f"{arguments}: status {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def run_json(*arguments, status=0):
    return json.loads(run(*arguments, "--json", status=status)[0])


def page_of(name, *files, options=()):
    """Makes a page of these inputs, unless that was done before; returns its path."""
    path = scratch(name)
    if not os.path.exists(path):
        run("report", *files, "--output", path, *options)
    return path
