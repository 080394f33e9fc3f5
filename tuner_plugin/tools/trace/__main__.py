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
import merge  # noqa: E402
import workload  # noqa: E402
from formats import is_chakra_file, read_content, read_trace  # noqa: E402
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
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--step")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--step-time", type=float, default=0, dest="step_us", metavar="MICROSECONDS",
                        help="time of a step, spread evenly, for traces without times")
    parser.add_argument("--host-time", action="store_true", help="computation has the time in which the GPU waits for the host")
    parser.add_argument("--skip", default="", metavar="NAMES")
    options = parser.parse_args(arguments)
    options.skip = set(options.skip.split(",")) - {""}
    options.rank = None if options.rank < 0 else options.rank
    options.world, options.step_us = options.world or None, options.step_us or None
    return options


def read_all(options):
    """Groups of ranks first: Chakra's traces need them, and their number is that of the job's ranks where nothing says it."""
    is_graph = {path: is_chakra_file(path, read_content(path)) for path in options.files}
    files = sorted(options.files, key=is_graph.get)
    options.pg_ranks, found = {}, []
    chakras = sum(is_graph[path] for path in files)
    for path in files:
        if options.world is None and chakras > 1 and not options.pg_ranks:
            options.world = chakras
        timeline = read_trace(path, options)
        if timeline.kind == "groups":
            options.pg_ranks.update(timeline.groups)
        else:
            found.append(timeline)
    return found


def one_rank(timelines, options):
    """([its step], the trace, that with its times or None)."""
    main, times = choose_traces(timelines, options)
    step = choose(main, options.step)
    if times:
        step = take_sizes(choose(times, options.step if times.marks else None), step, times.path, main.path)
    workload.check(step, main)
    workload.check_alone(step, main)
    return [workload.add_times(step, options.step_us, times or main)], main, times


def all_ranks(timelines, options):
    """The same of a job whose ranks differ in what they do."""
    timelines = merge.in_ranks_order(timelines)
    groups = merge.one_name(timelines)
    steps = merge.steps_of(timelines, options.step)
    for step, timeline in zip(steps, timelines):
        merge.take_splits(step)
        workload.check(step, timeline)
    steps = [workload.add_times(step, options.step_us, timeline) for step, timeline in zip(steps, timelines)]
    main = timelines[0]
    main.groups = groups
    return (steps[:1] if merge.all_alike(steps) else steps), main, None


def run(options):
    timelines = read_all(options)
    steps, main, times = (all_ranks if merge.is_wanted(timelines, options) else one_rank)(timelines, options)
    write(workload.text(steps, main, times, options), options.output)
    for each in timelines if len(steps) > 1 else filter(None, (main, times)):
        for note in each.notes:
            print(f"stratus-tune: {clean(each.path)}: note: {clean(note)}", file=sys.stderr)
    print(f"stratus-tune: {clean(workload.summary(steps, main))}", file=sys.stderr)
    return 0


def main():
    options = parse(sys.argv[1:])
    return status_of(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
