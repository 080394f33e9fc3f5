# SPDX-License-Identifier: Apache-2.0
"""NCCL Inspector's JSON into a timeline: a line for each call that has ended, in files that many things may have cut.

A number counts within a communicator and collective (NCCL src/plugin/profiler.cc, comm->seqNumber), and skips where calls
are not reported, as those of CUDA graphs: step.py tells those from lost ones.

Facts from NVIDIA/nccl plugins/profiler/inspector/README.md, inspector_json.cc (v4.0 to v4.3); bytes are those of the
call's count (inspector_plugin.cc). No output of a real run was at hand."""
from calls import empty_note
from problem import Problem, lines_text
from read_sequence import RANKS_MAX, US_MAX, Communicator, documents, merge, operation_of, unfinished
from step import Timeline

VERBOSE = "set NCCL_INSPECTOR_DUMP_VERBOSE=1"


def is_inspector(value):
    return isinstance(value, dict) and any(key in value for key in ("coll_perf", "p2p_perf", "dump_stats"))


class Stream:
    """The calls of one rank in one communicator."""

    def __init__(self, root, process):
        header = root.get("header")
        self.id, self.process = header.get("id").text(), process
        self.communicator = Communicator(header.get("n_ranks").integer(1, RANKS_MAX), header.get("nnodes").integer(1, RANKS_MAX),
                                         header.get("rank").integer(0, RANKS_MAX))
        self.calls = []  # (number, begin or None, operation, bytes, node)
        self.seen = set()

    @property
    def rank(self):
        return self.communicator.rank

    def close(self):
        """Numbers and orders the calls; returns how many move nothing, which are left out."""
        if all(begin is not None for _, begin, *_ in self.calls):
            self.calls.sort(key=lambda call: (call[1], call[0]))
        elif len({operation for _, _, operation, *_ in self.calls}) == 1:
            self.calls.sort(key=lambda call: call[0])
        numbers = [number for number, *_ in self.calls]
        is_of_all = all(map(int.__lt__, numbers, numbers[1:]))  # one counter for all collectives
        empty = {}
        for number, begin, operation, size, node in self.calls:
            counter = (id(self), None if is_of_all else operation)
            if size == 0:
                empty[counter] = empty.get(counter, 0) + 1
            else:
                self.communicator.calls.append((begin, operation, size, node,
                                                (counter, number - empty.get(counter, 0), node.document.first_line)))
        return sum(empty.values())


class Inspector:
    def __init__(self, path, options):
        self.timeline, self.options = Timeline(path, "NCCL Inspector", is_sequence=True), options
        self.streams, self.current = {}, None
        self.lost, self.bad, self.twice = 0, [], []

    def read(self, text):
        for document, problem, line, is_last in documents(self.timeline.path, text):
            if document:
                self.take(document.root)
            elif is_last:
                self.timeline.notes.append(unfinished(problem))
            else:
                self.bad.append(problem.line)
                if not line.startswith('{"coll_perf"'):
                    self.current = None  # it may have been the header of another communicator
        streams = self.choose(list(self.streams.values()))
        self.note(sum(stream.close() for stream in streams))
        communicators = [stream.communicator for stream in streams]
        self.timeline.has_times = all(call[0] is not None for each in communicators for call in each.calls)
        if not self.timeline.has_times:
            self.timeline.notes.append(f"no times of calls in it: {VERBOSE}")
            if len(communicators) > 1:
                raise Problem(f"several communicators without times of their calls, so their order is not known: {VERBOSE}",
                              self.timeline.path)
        return merge(self.timeline, communicators, self.options)

    def note(self, empty):
        notes = self.timeline.notes
        if self.bad:
            notes.append(f"left out: {lines_text(self.bad)}: no good JSON")
        if self.twice:
            notes.append(f"left out: {lines_text(self.twice)}: calls that the file has before")
        if empty:
            notes.append(empty_note(empty))
        if self.lost:
            notes.append(f"Inspector lost {self.lost} calls (NCCL_INSPECTOR_DUMP_COLL_RING_SIZE): steps may be incomplete")

    def take(self, root):
        if root.has("header"):
            metadata = root.get("metadata").value
            process = (str(metadata.get("hostname")), str(metadata.get("pid"))) if isinstance(metadata, dict) else ("", "")
            stream = Stream(root, process)
            self.current = self.streams.setdefault((process, stream.id, stream.rank), stream)
        if root.has("dump_stats") and root.get("dump_stats").has("coll_dropped_total"):
            self.lost = max(self.lost, root.get("dump_stats").get("coll_dropped_total").integer())
        if root.has("p2p_perf") and not {"send", "recv"} <= self.options.skip:
            root.get("p2p_perf").fail("send and recv: no collective that a workload file can name; --skip send,recv leaves "
                                      "them out")
        if root.has("coll_perf"):
            if self.current is None:
                root.fail("a call without the header of its communicator before it")
            self.take_call(root.get("coll_perf"), self.current)

    def take_call(self, node, stream):
        begin = node.get("event_trace_ts").get("coll_start_ts") if node.has("event_trace_ts") else None
        call = (node.get("coll_sn").integer(), begin.number(0, US_MAX) if begin else None, operation_of(node.get("coll")),
                node.get("coll_msg_size_bytes").integer(0))
        if call in stream.seen:
            self.twice.append(node.document.first_line)
            return
        stream.seen.add(call)
        stream.calls.append((*call, node))

    def choose(self, streams):
        """Those of one rank: the one that is asked for, where the file has it, else the lowest. What a rank is called tells its
        largest communicator."""
        ranks = {}  # rank in the job: process
        for process in dict.fromkeys(stream.process for stream in streams):
            own = [stream for stream in streams if stream.process == process]
            size = max(stream.communicator.ranks for stream in own)
            for rank in {stream.rank for stream in own if stream.communicator.ranks == size}:
                ranks.setdefault(rank, process)
        if not ranks:
            return streams
        wanted = self.options.rank if self.options.rank in ranks else min(ranks)
        self.timeline.rank = wanted
        own = [stream for stream in streams if stream.process == ranks[wanted]]
        if len(own) > len({stream.id for stream in own}):  # a process with several ranks
            if len({stream.id for stream in own}) > 1:
                raise Problem("has several ranks of one process and several communicators: which belong together cannot be told; "
                              "record with one process for each rank", self.timeline.path)
            own = [stream for stream in own if stream.rank == wanted]
        if len(own) < len(streams):
            self.timeline.notes.append(f"has calls of ranks {', '.join(map(str, sorted(ranks)))}: those of rank {wanted} are taken; "
                                       "--rank takes another's")
        return own


def read_inspector(path, text, options):
    return Inspector(path, options).read(text)
