# SPDX-License-Identifier: Apache-2.0
"""stratus-tune, run as people run it, and places for files. tests/trace uses it, too."""
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


def mutate(chance, text):
    """One or two places changed: a digit, bytes cut out or doubled, what should not be there, or the end lost."""
    text = bytearray(text)
    digits = [place for place, letter in enumerate(text) if letter in b"0123456789"]
    for _ in range(chance.randint(1, 2)):
        place, kind = chance.randrange(len(text) or 1), chance.randrange(16)
        if kind < 8 and digits:
            place = chance.choice(digits)
            text[place:place + 1] = chance.choice((b"0", b"7", b"99", b"-", b".", b"e5", b"1e9", b"nan"))
        elif kind < 10:
            text[place:place + 1] = bytes([chance.randrange(256)])
        elif kind < 12:
            del text[place:place + chance.randint(1, 200)]
        elif kind < 13:
            text[place:place] = text[place:place + chance.randint(1, 200)]
        elif kind < 15:
            text[place:place] = chance.choice((b"NaN", b"1e999", b"-1", b"null", b"{}", b"[]", b'""', b"\xff\xfe", b"\n",
                                               b"99999999999999999999", b"<script>", b"\x00", "\u2028".encode()))
        else:
            del text[place:]
    return bytes(text)
