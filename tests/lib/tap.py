# SPDX-License-Identifier: Apache-2.0
"""What test programs print: the lines of the Test Anything Protocol (version 14), which it numbers and counts, and last the sum,
which scripts/check reads. Scripts use tap.sh. run() runs every function test_NAME of some modules."""
import os
import shlex
import sys
import time
import traceback

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
REPEAT = os.path.relpath(sys.argv[0], ROOT)
counts = {"passed": 0, "failed": 0, "skipped": 0}


class Skip(Exception):
    """Raised by a test that cannot run here."""


def line(kind, word, text):
    counts[kind] += 1
    print(f"{word} {sum(counts.values())} - {text}", flush=True)


def note(text):
    for each in text.splitlines():
        print(f"# {each}", flush=True)


def ok(name, remark=""):
    line("passed", "ok", f"{name} ({remark})" if remark else name)


def not_ok(name, log="", repeat=""):
    line("failed", "not ok", name)
    note(log)
    if repeat:
        note(f"repeat: {repeat}")


def skip(name, why):
    line("skipped", "ok", f"{name} # SKIP {why}")


def skip_all(why):
    """No test can run. The exit status."""
    print(f"1..0 # SKIP {why}\n0 passed, 0 failed, 1 skipped")
    return 77


def that(is_so, name, log=""):
    if is_so:
        ok(name)
    else:
        not_ok(name, log)


def equal(name, expected, got):
    that(expected == got, name, f"expected {expected}\ngot      {got}")


def end():
    """The exit status; it is no success where nothing was tested."""
    print(f"1..{sum(counts.values())}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["failed"] or not sum(counts.values()) else 0


def run(modules, wanted, repeat=REPEAT):
    """The exit status. `wanted`: only tests whose names contain one of these; all, if empty. `repeat`: the command that takes them."""
    for module in modules:
        for name, test in [(name, test) for name, test in vars(module).items() if name.startswith("test_")]:
            whole = f"{module.__name__.removeprefix('test_')}: {name[5:]}".removeprefix("__main__: ")
            if wanted and not any(each in whole for each in wanted):
                continue
            start = time.monotonic()
            try:
                test()
                ok(whole, f"{time.monotonic() - start:.1f} s")
            except Skip as why:
                skip(whole, why)
            except Exception as error:  # pylint: disable=broad-except
                output = getattr(error, "output", None) or ""  # bytes behind a timeout, even of text
                output = output.decode(errors="replace") if isinstance(output, bytes) else output
                not_ok(whole, traceback.format_exc() + output, f"{repeat} {shlex.quote(whole)}")
    return end()
