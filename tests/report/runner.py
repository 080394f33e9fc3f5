# SPDX-License-Identifier: Apache-2.0
"""Runs every function test_NAME of some modules, and says how it went as scripts/check reads it.

A test that cannot run here raises Skip."""
import time
import traceback
import sys


class Skip(Exception):
    pass


def run_test(test, whole):
    """passed, failed or skipped."""
    start = time.monotonic()
    try:
        test()
    except Skip as why:
        print(f"skip  {whole}: {why}", flush=True)
        return "skipped"
    except Exception:  # pylint: disable=broad-except
        print(f"FAIL  {whole}", flush=True)
        traceback.print_exc(file=sys.stdout)
        return "failed"
    print(f"ok    {whole} ({time.monotonic() - start:.1f} s)", flush=True)
    return "passed"


def run(modules, wanted):
    """The exit status. `wanted`: only tests whose names contain one of these; all, if empty."""
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for module in modules:
        for name, test in [(name, test) for name, test in vars(module).items() if name.startswith("test_")]:
            whole = f"{module.__name__.removeprefix('test_')}: {name[5:]}".removeprefix("__main__: ")
            if not wanted or any(each in whole for each in wanted):
                count[run_test(test, whole)] += 1
    print(", ".join(f"{number} {what}" for what, number in count.items()))
    return 1 if count["failed"] or not sum(count.values()) else 0
