# SPDX-License-Identifier: Apache-2.0
"""Takes out of inputs what must not be in a report that goes from hand to hand.

Of an environment only the variables that explain a measurement are kept at all (KEPT); nccl-tests writes
the whole of it into its JSON. Whatever text is left, wherever it comes from, loses values that are named as
secrets or look like one, and characters that control terminals. Too much gone is better than too little."""
import re

REMOVED = "[removed]"
LONGEST = 2000

KEPT = re.compile(r"(NCCL|STRATUS|OFI_NCCL|FI|UCX|OMP|CUDA|FAKE_CUDA)_[A-Z0-9_]+")
SECRET_NAME = r"[\w.-]*(?:secret|token|passw|passphrase|pwd|credential|cookie|apikey|api[_-]?key|" \
              r"private|auth|bearer|signature|jwt|session|sas\b|_key|-key|\bkey)[\w.-]*"
# Names that sound like one and are none.
HARMLESS = {"nccl_ib_pkey", "nccl_socket_retry_cnt"}

VALUE = r"(\"[^\"]*\"|'[^']*'|\S+)"
NAMED = [re.compile(rf"(?i)(?<![\w.])({SECRET_NAME})([\"']?\s*[=:]\s*){VALUE}"),  # token=x, "token": x
         re.compile(rf"(?i)(?<!\S)(--?{SECRET_NAME})(\s+){VALUE}")]  # --token x
FLAG = re.compile(rf"(?i)^-{{1,2}}{SECRET_NAME}$")
SHAPES = [
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]+@"), rf"\1{REMOVED}@"),  # user:password in an address
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), rf"\1 {REMOVED}"),
    (re.compile(r"(?s)-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|$)"), REMOVED),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{12,}"), REMOVED),
    (re.compile(r"\b(gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|nvapi-|AIza|ya29\.|dop_v1_)[\w.-]{8,}"), REMOVED),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?"), REMOVED),
    # A run of letters and digits that no person types: hexadecimal, or upper and lower case with digits.
    (re.compile(r"(?<![\w+/=-])[0-9a-fA-F]{32,}(?![\w+/=-])"), REMOVED),
    (re.compile(r"[\w+=-]*(?<![A-Za-z0-9+=])(?=[A-Za-z+=]*[0-9])(?=[A-Z0-9+=]*[a-z])(?=[a-z0-9+=]*[A-Z])"
                r"[A-Za-z0-9+=]{20,}[\w+=-]*"), REMOVED),
]
# C0 and C1, and what turns the direction of text around.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def _named(match):
    name = match.group(1).lstrip("-")
    if name.lower() in HARMLESS:
        return match.group(0)
    return f"{match.group(1)}{match.group(2)}{REMOVED}"


def text(value):
    """A text without what looks like a secret; what is very long loses its end."""
    value = CONTROL.sub("?", str(value))
    if len(value) > LONGEST:
        value = value[:LONGEST] + "..."
    for pattern, replacement in SHAPES:
        value = pattern.sub(replacement, value)
    for pattern in NAMED:
        value = pattern.sub(_named, value)
    return value


def is_secret_name(name):
    return name.lower() not in HARMLESS and re.fullmatch(rf"(?i){SECRET_NAME}", name) is not None


def environment(entries):
    """{NAME: value} of the kept ones among "NAME=value"."""
    kept = {}
    for entry in entries:
        name, equals, value = entry[:2 * LONGEST].partition("=")
        if equals and KEPT.fullmatch(name):
            kept[name] = REMOVED if is_secret_name(name) else text(value)
    return dict(sorted(kept.items()))


def command(words):
    """A command line. A word after a flag that is named as a secret goes, and so do the values of all variables
    in it that would not be kept in an environment (mpirun -x NAME=value)."""
    out, is_next_secret = [], False
    for word in (word[:LONGEST] for word in words):
        assignment = re.fullmatch(r"(-x|-e|--env=|--export=)?([A-Za-z_]\w*)=(.*)", word, re.DOTALL)
        if is_next_secret:
            out.append(REMOVED)
        elif assignment and (not KEPT.fullmatch(assignment.group(2)) or is_secret_name(assignment.group(2))):
            out.append(f"{assignment.group(1) or ''}{assignment.group(2)}={REMOVED}")
        else:
            out.append(text(word))
        is_next_secret = FLAG.match(word) is not None
    return out
