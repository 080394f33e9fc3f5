# SPDX-License-Identifier: Apache-2.0
"""Profiler traces that are not quite JSON: PyTorch writes names of Python and numbers of CUPTI as they come.

What can be put right without a guess is: a backslash that escapes nothing, and nan and inf, which stay no numbers. Another event
that cannot be parsed is taken out if a workload file does not need it. Lines keep their numbers."""
import json
import re

from problem import Problem
from read_profiler import GPU, PASSED_OVER, RUNTIME
from strict_json import LENIENT

WINDOWS = (4096, 65536)  # characters; most events have a few hundred
EVENTS = re.compile(r'\A\s*\[|"traceEvents"\s*:\s*\[')
EVENT = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args)"\s*:')
LAST = re.compile(r'\}(?=\s*\]\s*(?:,\s*"|\}?\s*\Z))')
PHASE = re.compile(r'"ph"\s*:\s*"(\w)"')
CATEGORY = re.compile(r'"cat"\s*:\s*"([^"]*)"')
# Events that a workload file is made of, whatever their category is called.
NEEDED = re.compile(r"record_param_comms|ProfilerStep|c10d::")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[-+]?\b(?:nan|inf(?:inity)?)\b(?:\(\w*\))?', re.IGNORECASE | re.DOTALL)
ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


def _right(token):
    text = token.group(0)
    if text[0] != '"':
        return "NaN"
    return ESCAPE.sub(lambda escape: escape.group(0) if escape.group(1) else r"\\", text)


def put_right(text):
    return TOKEN.sub(_right, text)


def _after(text, at):
    """The next place that is not blank, and at the end of the text that."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def event_end(text, at):
    """Behind the event that begins there; None: it is none. Looks at little of the text first, as an error of json costs the time
    to count the lines before it."""
    for size in (*WINDOWS, len(text)):
        window = text[at:at + size]
        try:
            end = _after(text, at + LENIENT.raw_decode(window)[1])
        except RecursionError:
            return None
        except json.JSONDecodeError as error:
            if error.pos < len(window) // 2 and not error.msg.startswith("Unterminated"):
                return None
            continue
        return end if text[end:end + 1] in (",", "]") else None
    return None


def bad_end(text, at):
    """Behind an event, or several, that cannot be parsed: where the next one that can begins, or the list ends; None: the file
    ends before."""
    for found in EVENT.finditer(text, at + 1):
        before = text[at:found.start()].rstrip()
        if before.endswith("},") and event_end(text, found.start()) is not None:
            return at + len(before) - 1
    last = LAST.search(text, at)
    return last.end() if last else None


def needed(text, has_gpu):
    """The category for which an event is needed, or None."""
    if "X" not in (PHASE.findall(text) or "X"):
        return None
    for category in CATEGORY.findall(text) or [""]:
        if category in (*RUNTIME, *GPU, "cuda_sync"):
            return category
        if category not in PASSED_OVER and (not has_gpu or not category or NEEDED.search(text)):
            return category or "unknown"
    return None


def mend(path, text):
    """(the text with events that can be parsed, the lines of those that were taken out)."""
    begin = EVENTS.search(text)
    if not begin:
        return put_right(text), []
    has_gpu = '"kernel"' in text
    parts, lost, done, at = [put_right(text[:begin.end()])], [], begin.end(), _after(text, begin.end())
    line, counted = 1, 0  # ends of lines up to there
    while at < len(text) and text[at] != "]":
        end = event_end(text, at)
        if end is None:
            end = bad_end(text, at)
            if end is None:
                break
            event = put_right(text[at:end])
            if event_end(event + ",", 0) is None:
                line, counted = line + text.count("\n", counted, at), at
                if category := needed(event, has_gpu):
                    raise Problem(f"an event of category {category[:40]}, which is needed, is no JSON: correct it, or record again",
                                  path, line)
                lost.append(line)
                event = "{}" + "\n" * event.count("\n")
            parts += [text[done:at], event]
            done = end
        at = _after(text, end)
        at = _after(text, at + 1) if text[at:at + 1] == "," else at
    return "".join([*parts, text[done:at], put_right(text[at:])]), lost
