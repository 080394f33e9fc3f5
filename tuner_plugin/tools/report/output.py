# SPDX-License-Identifier: Apache-2.0
"""Writes a file whole, or to stdout; an exit status, with the message of what went wrong."""
import os
import sys
import tempfile

from plain import clean
from problem import Problem


def write(text, path):
    """A reader of the file sees all of it or nothing. What is no file, such as /dev/null, is not replaced by one."""
    if path in (None, "-"):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".stratus-tune-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Problem(f"cannot be written: {error.strerror}", path) from None


def status_of(run):
    """What `run` returns; 1, after a message, if it cannot go on."""
    try:
        return run()
    except Problem as problem:
        print(f"stratus-tune: {clean(str(problem))}", file=sys.stderr)
    except MemoryError:
        print("stratus-tune: out of memory", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: that is no error worth a message
    return 1
