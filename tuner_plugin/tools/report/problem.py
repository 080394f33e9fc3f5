# SPDX-License-Identifier: Apache-2.0
"""What is wrong with an input: always with the file, and the line and column where they are known."""

SHOWN_MAX = 8  # line numbers in a note


def lines_text(lines):
    shown = ", ".join(map(str, lines[:SHOWN_MAX])) + (f" and {len(lines) - SHOWN_MAX} more" if len(lines) > SHOWN_MAX else "")
    return f"line{'s' if len(lines) > 1 else ''} {shown}"


class Problem(Exception):
    def __init__(self, text, path=None, line=None, column=None):
        super().__init__(text)
        self.text, self.path, self.line, self.column = text, path, line, column

    def at(self, path):
        """The same, of this file."""
        return Problem(self.text, self.path or path, self.line, self.column)

    def __str__(self):
        place = [str(each) for each in (self.path, self.line, self.column) if each]
        return ": ".join([*([":".join(place)] if place else []), self.text])
