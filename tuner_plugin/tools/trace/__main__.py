# SPDX-License-Identifier: Apache-2.0
"""Traces of jobs into workload files, for `stratus-tune workload`, which starts this.

    python3 tuner_plugin/tools/trace workload [options] TRACE...

Exit status: 0 done; 1 it did not work; 2 wrong use."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../report")]

# pylint: disable=wrong-import-position
import workload  # noqa: E402
from formats import read_trace  # noqa: E402
from output import status_of, write  # noqa: E402
from pairing import choose_traces, take_sizes  # noqa: E402
from plain import clean  # noqa: E402
from step import choose  # noqa: E402


def parse(arguments):
    parser = argparse.ArgumentParser(prog="stratus-tune", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("workload",))
    parser.add_argument("files", nargs="+", metavar="TRACE")
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--name")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--step")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--world", type=int)
    parser.add_argument("--step-us", type=float, help="time of a step, spread evenly, for traces without times")
    parser.add_argument("--host-time", action="store_true", help="computation has the time in which the GPU waits for the host")
    parser.add_argument("--skip", default="", metavar="NAMES")
    options = parser.parse_args(arguments)
    options.skip = set(options.skip.split(",")) - {""}
    return options


def run(options):
    timelines = [read_trace(path, options) for path in options.files]
    main, times = choose_traces(timelines, options)
    step = choose(main, options.step)
    if times:
        step = take_sizes(choose(times, options.step if times.marks else None), step, times.path, main.path)
    workload.check(step, main)
    step = workload.add_times(step, options.step_us, times or main)
    write(workload.text(step, main, times, options), options.output)
    for each in filter(None, (main, times)):
        for note in each.notes:
            print(f"stratus-tune: {clean(each.path)}: note: {clean(note)}", file=sys.stderr)
    print(f"stratus-tune: {clean(workload.summary(step, main))}", file=sys.stderr)
    return 0


def main():
    options = parse(sys.argv[1:])
    return status_of(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
