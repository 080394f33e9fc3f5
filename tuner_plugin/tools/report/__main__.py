# SPDX-License-Identifier: Apache-2.0
"""Reports of measurements, for `stratus-tune report` and `stratus-tune compare`, which start this.

    python3 tuner_plugin/tools/report report [options] FILE...
    python3 tuner_plugin/tools/report compare [options] A B [A B]...

Exit status: 0 done; 1 it did not work, or B is slower; 2 wrong use."""
import argparse
import importlib.util
import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import compare  # noqa: E402
import comparison  # noqa: E402
import plain  # noqa: E402
import sections  # noqa: E402
from lines import shapes_of  # noqa: E402
from output import status_of, write  # noqa: E402
from points import OPERATIONS, operation_of  # noqa: E402
from problem import Problem  # noqa: E402
from read import read_source  # noqa: E402

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "text"}
DEBIAN_PYTHON = "/usr/bin/python3"
TRIED = "_STRATUS_REPORT_PYTHON"  # in the environment: DEBIAN_PYTHON runs already


def parse(arguments):
    parser = argparse.ArgumentParser(prog="stratus-tune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("report", "compare"))
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--format", choices=("auto", "html", "markdown", "text"), default="auto")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--title")
    parser.add_argument("--coll")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--tool", help="path of stratus-tune, which reads profiles")
    parser.add_argument("--version-text", default="")
    options = parser.parse_args(arguments)
    if options.coll:
        word, options.coll = options.coll, operation_of(options.coll)
        if not options.coll:
            parser.error(f"--coll takes one of {', '.join(OPERATIONS)}, not \"{word}\"")
    if options.what == "compare" and len(options.files) % 2:
        parser.error("compare takes pairs of files: A B, or A B A B ... of runs that alternated")
    return options


def format_of(options):
    """How the document is written: as asked, else by the name of the file, else as text."""
    if options.format != "auto":
        return options.format
    if options.output in (None, "-"):
        return "text"
    ending = os.path.splitext(options.output)[1].lower()
    if ending not in FORMATS:
        raise Problem(f"--output {options.output}: unknown format; use the extension .html, .md or .txt, or give --format")
    return FORMATS[ending]


def need_matplotlib():
    """Goes on under Debian's Python where only that one has it."""
    if importlib.util.find_spec("matplotlib"):
        return
    if os.path.exists(DEBIAN_PYTHON) and not os.environ.get(TRIED):
        os.environ[TRIED] = "1"  # once
        os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, "-B", os.path.dirname(os.path.abspath(__file__)), *sys.argv[1:]])
    raise Problem("plots need matplotlib, which no Python here has: apt-get install python3-matplotlib. "
                  "--format markdown and --format text do without")


def render(document, options):
    kind = format_of(options)
    if kind == "text":
        return plain.as_text(document)
    if kind == "markdown":
        return plain.as_markdown(document)
    import page  # pylint: disable=import-outside-toplevel
    made = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    return page.as_html(document, f"Made by stratus-tune {options.version_text} on "
                                  f"{time.strftime('%Y-%m-%d %H:%M', made)} UTC. This page asks nothing of any network.")


def report_json(sources, options):
    profiles = [source for source in sources if source.profile]
    shapes = shapes_of(sources, options.in_place, profiles[0] if profiles else None)
    return {"version": 1, "inputs": [{"file": source.path, "label": source.label, "format": source.kind,
                                      "sha256": source.sha256, "facts": source.facts, "notes": source.notes}
                                     for source in sources],
            "shapes": [{"coll": shape.operation, "nodes": shape.nodes, "ppn": shape.ppn, "lines": [
                {"label": line.label, "role": line.role, "points": [
                    {"bytes": size, "time_us": at.time_us, "busbw_gbs": at.busbw, "noise": at.noise, "wrong": at.wrong,
                     "cell": at.what or None} for size, at in sorted(line.at.items())]} for line in shape.lines]}
                for shape in shapes],
            "tables": [{"file": source.path, "section": section.title, "title": table.caption, "columns": table.columns,
                        "rows": table.rows} for source in sources for section in source.sections for table in section.tables]}


def run(options):
    sources = [read_source(each, options.coll, options.tool) for each in options.files]
    if options.what == "report":
        if options.json:
            write(json.dumps(report_json(sources, options), indent=1) + "\n", options.output)
        else:
            write(render(sections.build(sources, options.title, options.in_place or None), options), options.output)
        return 0
    found = compare.compare(sources[0::2], sources[1::2])
    if options.json:
        write(json.dumps(comparison.as_json(found), indent=1) + "\n", options.output)
    else:
        write(render(comparison.build(found, options.title), options), options.output)
    if found.is_regression:
        print(f"stratus-tune: {comparison.verdict_text(found)}", file=sys.stderr)
    return 1 if found.is_regression else 0


def main():
    options = parse(sys.argv[1:])

    def work():
        if not options.json and format_of(options) == "html":
            need_matplotlib()
        return run(options)
    return status_of(work)


if __name__ == "__main__":
    sys.exit(main())
