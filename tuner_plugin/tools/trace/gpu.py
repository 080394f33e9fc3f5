# SPDX-License-Identifier: Apache-2.0
"""What a profiler trace says of the GPU: the time of its kernels, and where they wait for collectives.

Computation is the time in which a kernel or copy that is not NCCL's ran; time in which two ran counts once.
--host-time adds the time in which the GPU ran nothing, NCCL's kernels neither, because the host had not launched the
next kernel. A trace without a GPU: the time of the operators that contain no other operator, on the threads that
begin collectives.

Waits of the compute stream, the one with the most time of kernels. A call on that stream itself is waited for at once
(PyTorch 2.8 and newer, calls that are not asynchronous). With records of `Stream Wait Event`
(enable_cuda_sync_events=True): where such a wait names the stream of a call, for the last call on it that was begun
before the event was recorded. Without: a kernel that was launched before a call ended, and began only after it, on an
idle stream, waited for that call. A wait that cost no time is not seen. At its end a step waits for all calls."""
import bisect

from step import Compute, Wait


def is_nccl(kernel):
    return kernel.name.lower().startswith(("nccl", "rccl")) or isinstance(kernel.args.get("Collective name"), str)


class Work:
    """A kernel or copy, and when the host launched it."""
    __slots__ = ("begin", "end", "stream", "launch", "us")

    def __init__(self, kernel, launch):
        self.begin, self.end, self.stream, self.launch, self.us = kernel.begin, kernel.end, kernel.stream(), launch, 0.0


class Running:
    """A call and its kernel."""
    __slots__ = ("end", "stream", "call", "at")

    def __init__(self, kernel, call, at):
        self.end, self.stream, self.call, self.at = kernel.end, kernel.stream(), call, at


def launch_of(reader, event):
    """When the host called for it; of what no call is in the trace, when it ran."""
    call = reader.launches.get(event.args.get("correlation"))
    return call.begin if call else event.begin


def merged(kernels):
    """Times in which any of them ran, as (begin, end)."""
    found = []
    for kernel in sorted(kernels, key=lambda kernel: kernel.begin):
        if found and kernel.begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], kernel.end))
        else:
            found.append((kernel.begin, kernel.end))
    return found


def time_outside(begin, end, busy):
    """How much of a time is in none of these."""
    at = bisect.bisect_right(busy, (begin,))
    overlap = 0.0
    for first, last in busy[max(0, at - 1):]:
        if first >= end:
            break
        overlap += max(0.0, min(last, end) - max(first, begin))
    return max(0.0, end - begin - overlap)


def split_time(works, communication):
    """Each gets the time in which no earlier one still ran, so that the sum is the time in which any did. With
    `communication`, the times of NCCL's kernels, also the time before it in which the GPU ran nothing because the host
    had not launched it yet."""
    until = works[0].begin if works else 0.0
    for work in works:
        work.us = max(0.0, work.end - max(work.begin, until))
        idle_until = min(work.begin, work.launch)
        if communication is not None and idle_until > until:
            work.us += time_outside(until, idle_until, communication)
        until = max(until, work.end)


def pair_kernels(reader, calls):
    """Kernel of each call that has one, by the id that both carry, else by the launch within the operator."""
    kernels = [kernel for kernel in reader.kernels if is_nccl(kernel)]
    by_id = {kernel.args["External id"]: kernel for kernel in kernels if "External id" in kernel.args}
    launched = sorted(((launch_of(reader, kernel), kernel) for kernel in kernels), key=lambda pair: pair[0])
    times = [time for time, _ in launched]
    running = []
    for event, call in calls:
        kernel = event if event.category == "kernel" else by_id.get(event.args.get("External id"))
        if not kernel:
            at = bisect.bisect_left(times, event.begin)
            kernel = launched[at][1] if at < len(times) and times[at] < event.end else None
        if kernel:
            running.append(Running(kernel, call, event.begin))
    return running


def compute_and_waits(reader, calls):
    works = sorted((Work(kernel, launch_of(reader, kernel)) for kernel in reader.kernels if not is_nccl(kernel)),
                   key=lambda work: (work.begin, work.end))
    split_time(works, merged(filter(is_nccl, reader.kernels)) if reader.options.host_time else None)
    items = [((work.launch, 2), Compute(work.us)) for work in works]
    busy = {}
    for work in works:
        busy[work.stream] = busy.get(work.stream, 0) + work.end - work.begin
    if not busy:
        return items
    main = max(busy, key=busy.get)
    running = pair_kernels(reader, calls)
    items += [((each.at, 1), Wait(each.call)) for each in running if each.stream == main]
    others = [each for each in running if each.stream != main]
    recorded = [event for event in reader.waits if event.args.get("cuda_sync_kind", event.name) == "Stream Wait Event"]
    if recorded:
        return items + recorded_waits(reader, recorded, main, others)
    return items + seen_waits([work for work in works if work.stream == main], others)


def recorded_waits(reader, events, main, running):
    """CUPTI's records of cudaStreamWaitEvent say which stream waits, and for which event of which other stream: for the
    last call that was begun on that one before the event was recorded."""
    items = []
    for event in events:
        if event.args.get("stream") != main:
            continue
        record = reader.launches.get(event.args.get("wait_on_cuda_event_record_corr_id"))
        at = launch_of(reader, event)
        limit = record.begin if record else at
        before = [each for each in running if each.stream == event.args.get("wait_on_stream") and each.at <= limit]
        if before:
            items.append(((at, 1), Wait(max(before, key=lambda each: each.at).call)))
    return items


def seen_waits(works, running):
    """Without those records: a kernel that was launched before a call ended, and began only after it, on a stream
    that was idle meanwhile, waited for that call."""
    items, waited = [], set()
    running = sorted(running, key=lambda each: each.end)
    ends = [each.end for each in running]
    until = 0.0
    for work in works:
        at = bisect.bisect_right(ends, work.begin) - 1
        if at >= 0 and running[at].end > max(until, work.launch) and running[at].call not in waited:
            items.append(((work.launch, 1), Wait(running[at].call)))
            waited.add(running[at].call)
        until = max(until, work.end)
    return items
