# SPDX-License-Identifier: Apache-2.0
"""JSON whose every value is checked, and whose errors name the line. Files are not trusted."""
import json
import math
import re

from problem import Problem

DEPTH_MAX = 40


def _no_constant(name):
    raise Problem(f"{name} is no number that JSON knows")


def _integer(text):
    if len(text) > 20:
        raise Problem(f"a whole number of {len(text)} digits")
    return int(text)


def _float(text):
    value = float(text) if len(text) <= 64 else math.inf
    if not math.isfinite(value):
        raise Problem(f"{text[:40]} is too large, or not exact enough to be a number")
    return value


class NoJson(Problem):
    """The text breaks the rules of JSON."""


class Cut(NoJson):
    """The text ends before its JSON does."""


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer, parse_float=_float)


class NoNumber:
    """Where a number should be: NaN, or one out of all bounds. No check of Node takes it."""

    def __init__(self, text):
        self.text = text


def _integer_or_none(text):
    return int(text) if len(text) <= 20 else NoNumber(text)


def _float_or_none(text):
    value = float(text) if len(text) <= 64 else math.inf
    return value if math.isfinite(value) else NoNumber(text)


# For files of which only a part is needed: what is wrong with a number is told by whoever needs it.
LENIENT = json.JSONDecoder(strict=False, parse_constant=NoNumber, parse_int=_integer_or_none, parse_float=_float_or_none)


def parse(text, path, decoder=DECODER):
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated string") or \
            error.msg != "Extra data" and re.fullmatch(r"[-+.\w]*\s*", text[error.pos:])
        if is_cut:
            raise Cut("no good JSON: the file ends early", path, error.lineno, error.colno) from None
        raise NoJson(f"no good JSON: {error.msg}", path, error.lineno, error.colno) from None
    except RecursionError:
        raise Problem("JSON that is nested too deeply", path) from None
    except Problem as problem:
        problem.line = line_of_bad_number(text)
        raise problem.at(path) from None


def line_of_bad_number(text):
    """The line that DECODER stopped at for a number; found again, as it does not report it."""
    place = 0
    try:
        for number, line in enumerate(text.split("\n"), 1):
            place = number
            for word in line.replace(",", " ").replace(":", " ").replace("[", " ").replace("]", " ").split():
                if word.strip("}{") in ("NaN", "Infinity", "-Infinity"):
                    return number
                if word[:1] in "-0123456789" and len(word) > 4:
                    DECODER.decode(word.strip("}{"))
    except Problem:
        return place
    except ValueError:
        pass
    return None


def _blank(text, at):
    """The next place that is not blank."""
    while text[at] in " \t\r\n":
        at += 1
    return at


def members(text):
    """(key, where its value begins) of an object, as far as its text goes."""
    at = _blank(text, 0)
    if text[at] != "{":
        return
    while text[at] in "{,":
        key, at = json.decoder.scanstring(text, _blank(text, at + 1) + 1, False)
        at = _blank(text, _blank(text, at) + 1)
        yield key, at
        at = _blank(text, DECODER.raw_decode(text, at)[1])


def close_cut(text, key):
    """The text of an object that ends in or behind its list `key`, closed behind the last element that is whole; None where it
    does not get there."""
    try:
        begin = next(at for found, at in members(text) if found == key)
    except (Problem, ValueError, IndexError, StopIteration):
        return None
    end = at = begin + 1
    try:
        while text[begin] == "[":
            at = end = DECODER.raw_decode(text, _blank(text, at))[1]
            if text[_blank(text, at)] != ",":
                break
            at = _blank(text, at) + 1
    except (Problem, ValueError, IndexError):
        pass
    return text[:end] + "]}" if text[begin] == "[" else None


def line_of(text, keys, decoder=DECODER):
    """The line of a value in a text that has been parsed, by its keys and indices from the top."""
    at = _blank(text, 0)
    try:
        for key in keys:
            is_object, at, index = text[at] == "{", _blank(text, at + 1), 0
            while True:
                found = index
                if is_object:
                    found, at = json.decoder.scanstring(text, at + 1, False)
                    at = _blank(text, _blank(text, at) + 1)
                if found == key:
                    break
                at = _blank(text, decoder.raw_decode(text, at)[1])
                if text[at] != ",":
                    return text.count("\n", 0, at) + 1
                at, index = _blank(text, at + 1), index + 1
    except (Problem, ValueError, IndexError):
        return None
    return text.count("\n", 0, at) + 1


class Node:
    """A value and how to get to it. The take functions check what they return."""

    def __init__(self, document, value, keys=()):
        self.document, self.value, self.keys = document, value, keys

    @property
    def line(self):
        return self.document.line(self.keys)

    @property
    def name(self):
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.keys).lstrip(".")

    def fail(self, text):
        name = self.name
        raise Problem(f"{name + ': ' if name else ''}{text}", self.document.path, self.line)

    def has(self, key):
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def get(self, key):
        """The node below, whose value may be None."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        if key not in self.value:
            return Node(self.document, None, (*self.keys, key))
        return Node(self.document, self.value[key], (*self.keys, key))

    def each(self):
        if not isinstance(self.value, list):
            self.fail("must be a list")
        for index, value in enumerate(self.value):
            yield Node(self.document, value, (*self.keys, index))

    def items(self):
        """(key, node) of an object."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        for key in self.value:
            yield key, self.get(key)

    def integer(self, low=0, high=1 << 62):
        value = self.value
        if isinstance(value, float) and value == int(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.fail(f"must be a whole number from {low} to {high}")
        return value

    def number(self, low=0.0, high=1e15):
        value = self.value
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
            self.fail(f"must be a number from {low:g} to {high:g}")
        return float(value)

    def text(self, longest=4096):
        if not isinstance(self.value, str) or len(self.value) > longest:
            self.fail(f"must be a text of at most {longest} characters")
        return self.value

    def word(self, words):
        if self.value not in words:
            self.fail(f"must be one of {', '.join(words)}")
        return self.value

    def flag(self):
        if self.value not in (True, False) or not isinstance(self.value, bool):
            self.fail("must be true or false")
        return self.value


class Document:
    def __init__(self, path, text, first_line=1, decoder=DECODER):
        self.path, self.text, self.first_line, self.decoder = path, text, first_line, decoder
        self.root = Node(self, parse(text, path, decoder))

    def line(self, keys):
        found = line_of(self.text, keys, self.decoder)
        return found + self.first_line - 1 if found else None
