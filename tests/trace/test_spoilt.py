# SPDX-License-Identifier: Apache-2.0
"""Traces and sequences of which a part is spoilt, lost or cut: what is not needed costs nothing but a note with its line; what is
needed is refused with its line; no step is wrong."""
import functools
import json
import os

import imported as whole_program
import invent
from imported import calls, compute_us, data, run_inside
from tool import read, write

imported = functools.partial(whole_program.imported, run=run_inside)
refused = functools.partial(whole_program.refused, run=run_inside)
READERS = "tests/data/readers"
DDP = [("all_reduce", elements, "float32", "world") for elements in invent.DDP_BUCKETS]
STEP = [("all_reduce", 1048576, "float32", "world"), ("all_reduce", 262144, "float32", "world")]


def events(path):
    return imported(path)[0]["events"]


def with_event(event, before=5, name="spoilt.json"):
    """The trace of DDP with one more event as text; (file, its line)."""
    lines = read(data("ddp.json")).split("\n")
    lines.insert(before, event + ",")
    return write(name, "\n".join(lines)), before + 1


def event(category="python_function", name='"f"', ts="1", dur="1", args='{"Python id": 1}'):
    return f'{{"ph": "X", "cat": "{category}", "name": {name}, "pid": 1, "tid": 1, "ts": {ts}, "dur": {dur}, "args": {args}}}'


def expect_ddp(path, *notes):
    workload, said = imported(path)
    assert calls(workload["events"]) == DDP, (path, workload)
    for note in notes:
        assert note in said, (note, said)
    assert said.count("note: left out") == len([note for note in notes if "left out" in note]), said
    return workload["events"]


def test_reported_traces():
    for name in sorted(os.listdir(f"{READERS}/trace")):
        path = f"{READERS}/trace/{name}"
        if name == "cut.json":
            assert f"{path}:18:" in refused(path) and "the file ends early: whoever wrote it was stopped" in refused(path)
        elif name == "ranks-cut-two-halves.json":
            assert "[0, 1, ... 28, ..., 511]: which 64 ranks these are cannot be told" in refused(path)
        elif name == "zero-elements.json":
            workload, said = imported(path)
            assert calls(workload["events"]) == [("alltoall", 50, "float32", "world")] and "imported as even ones" in said
        else:
            workload, said = whole_program.imported(path)
            assert calls(workload["events"]) == STEP[:1] and compute_us(workload["events"]) == [300], (name, workload)
            assert ("left out: line 5: " in said) == (name in ("ml-quote.json", "ml-negdur-op.json")), (name, said)


def test_events_that_are_not_needed():
    for name in ('"a"b"', '"a "b", "c" d"', '"unfinished', "'single'", "", '"a", "name'):
        path, line = with_event(event(name=name))
        expect_ddp(path, f"left out: line {line}: events that are no JSON, and not needed")
    for name in (r'"C:\dir"', r'"C:\\new\x"', r'"\u12"', r'"\("', '"two\nlines"', '"tab\there"', '"bell\x07"', '"\u2028"'):
        expect_ddp(with_event(event(name=name))[0])
    for number in ("nan", "-nan", "NaN", "inf", "-Infinity", "1e999", "-nan(ind)", "9" * 40, "-" + "9" * 25):
        expect_ddp(with_event(event(args=f'{{"est. achieved occupancy %": {number}}}'))[0])
        expect_ddp(with_event(event(ts=number))[0])
        path, line = with_event(event("cpu_op", ts=number))
        expect_ddp(path, f"left out: line {line}: events of the host without a good name, ts and dur, not needed")
    for other in ('{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python "x""}}',
                  '{"name": "thread_name", "ph": "M", "args": {"name": "a\\"}}', '{"ph": "i", "cat": "cpu_instant_event", "name": ""["}',
                  '{"ph": "s", "id": 5, "cat": "ac2g", "name": "a"b"}'):
        path, line = with_event(other)
        expect_ddp(path, f"left out: line {line}: events that are no JSON")
    for dur in ("-5", '"long"', "null", "1e30", "[]", "true"):
        path, line = with_event(event("cpu_op", dur=dur))
        expect_ddp(path, f"left out: line {line}: events of the host")
    latin = read(with_event(event(name='"caf?"'))[0]).encode().replace(b"caf?", b"caf\xff")
    assert b"\xff" in latin
    expect_ddp(write("latin.json", latin))
    expect_ddp(write("bom.json", "\ufeff" + read(data("ddp.json"))))


def test_spoilt_events_stand_anywhere():
    bad = event(name='"a"b"')
    lines = read(data("ddp.json")).split("\n")
    last = next(number for number, line in enumerate(lines) if line.startswith("]"))
    for before in (1, 2, last - 1):
        path, line = with_event(bad, before)
        expect_ddp(path, f"left out: line {line}: events that are no JSON")
    whole = [*lines[:last - 1], lines[last - 1] + ",", bad, *lines[last:]]
    expect_ddp(write("last.json", "\n".join(whole)), f"left out: line {last + 1}: events that are no JSON")
    tail = lines[last].replace("]", '], "deviceProperties": [{"id": 0}]', 1)
    expect_ddp(write("tail.json", "\n".join([*whole[:-len(lines[last:])], tail, *lines[last + 1:]])), f"left out: line {last + 1}: ")
    many = [part for line in lines[1:last] for part in (line, bad + ",")]
    expect_ddp(write("many.json", "\n".join([lines[0], *many[:-2], lines[last - 1], *lines[last:]])), "left out: lines 3, 5, 7, ")
    split = bad.replace(', "', ',\n  "')
    path, line = with_event(split)
    expect_ddp(path, f"left out: line {line}: ")
    one_line = read(with_event(bad)[0]).replace("\n", " ")
    expect_ddp(write("one-line.json", one_line), "left out: line 1: ")


def test_a_kernel_keeps_its_time_beside_a_number_that_is_none():
    plain = expect_ddp(with_event(event("kernel", '"k"', "1000", "2000", '{"stream": 7}'))[0])
    for number in ("nan", "-inf", "1e999", "9" * 30):
        args = f'{{"est. achieved occupancy %": {number}, "stream": 7}}'
        assert expect_ddp(with_event(event("kernel", '"k"', "1000", "2000", args))[0]) == plain


def test_events_that_are_needed_are_refused_with_their_line():
    for category, name, ts, dur, says in (
            ("kernel", '"a"b"', "1", "1", "an event of category kernel, which is needed, is no JSON: correct it"),
            ("cuda_runtime", '"a"b"', "1", "1", "an event of category cuda_runtime, which is needed"),
            ("cpu_op", '"record_param_comms", "x": "a"b"', "1", "1", "an event of category cpu_op, which is needed"),
            ("user_annotation", '"ProfilerStep#5", "x": "a"b"', "1", "1", "category user_annotation, which is needed"),
            ("kernel", '"k"', "nan", "1", ".ts: must be a number"), ("kernel", '"k"', "1", "-1", ".dur: must be a number"),
            ("kernel", '"k"', "1", "9" * 30, ".dur: must be a number"), ("gpu_memcpy", '"m"', "1", "inf", ".dur: must be a number"),
            ("user_annotation", '"ProfilerStep#9"', "-1", "1", ".ts: must be a number")):
        path, line = with_event(event(category, name, ts, dur))
        said = refused(path)
        assert f"{path}:{line}: " in said and says in said, said
    for key in ("In msg nelems", "Group size"):
        text = read(data("ddp.json")).replace(f'"{key}": ', f'"{key}": nan, "x": ', 1)
        assert f".args.{key}: must be a whole number" in refused(write("fact.json", text))


def test_without_a_gpu_operators_are_needed():
    document = json.loads(read(data("ddp.json")))
    document["traceEvents"] = [each for each in document["traceEvents"] if each["cat"] not in ("kernel", "cuda_runtime")]
    lines = invent.lines_of(document, "traceEvents").split("\n")
    for bad, says in ((event("cpu_op", '"aten::mm"', dur="-5"), ".dur: must be a number"),
                      (event("cpu_op", '"a"b"'), "category cpu_op, which is needed, is no JSON")):
        said = refused(write("cpu.json", "\n".join([lines[0], bad + ",", *lines[1:]])))
        assert ":2: " in said and says in said, said
    expect_ddp(write("cpu.json", "\n".join([lines[0], event(name='"a"b"') + ",", *lines[1:]])), "left out: line 2: ")


def test_execution_traces_with_numbers_that_are_none():
    text = read(data("execution.json"))
    plain = events(data("execution.json"))
    for number in ("nan", "-inf", "1e999", "9" * 30, r'"C:\dir"'):
        other = text.replace('"inputs": {"values": []', f'"inputs": {{"values": [{number}]')
        assert other != text
        assert events(write("execution.json", other)) == plain
    bad = text.replace('"name": "in_msg_nelems", "type": "uint64", "value": 262144', '"name": "in_msg_nelems", "type": "uint64", "value": nan')
    assert bad != text and ".value: must be a whole number" in refused(write("execution.json", bad))


def test_traces_that_are_cut_are_refused_wherever():
    text = read(data("ddp.json"))
    for end in range(200, len(text.rstrip()) - 1, 997):
        said = refused(write("cut.json", text[:end]))
        assert "the file ends early: whoever wrote it was stopped, and steps may be incomplete; record it again" in said, (end, said)


# ---- facts of collectives ----

def collective(name, given, received, **more):
    profile = invent.Profile()

    def step(each):
        each.kernel(10.0)
        each.collective("allreduce", 1000, 1000, "Float", 5.0)
        each.collective(name, given, received, "Float", 5.0, **more)
    profile.step(1, step)
    return write("facts.json", json.dumps(profile.document()))


def test_calls_of_no_elements():
    for name in ("allreduce", "_allgather_base", "_reduce_scatter_base", "broadcast", "all_to_allv", "reduce"):
        workload, said = imported(collective(name, 0, 0))
        assert calls(workload["events"]) == [("all_reduce", 1000, "float32", "world")], workload
        assert "note: left out: 1 call of no elements" in said, said
    for given, received, count in ((0, 80, 10), (0, 1, 1), (0, 81, 11), (80, 0, 10), (80, 16, 10)):
        workload, _ = imported(collective("all_to_allv", given, received))
        assert calls(workload["events"])[1] == ("alltoall", count, "float32", "world"), workload
    for name, given, received in (("allreduce", 0, 5), ("_reduce_scatter_base", 5, 0), ("broadcast", 0, 5)):
        assert "0 elements, expected 1 to" in refused(collective(name, given, received))


def group_of(text, size, world=512):
    profile = invent.Profile(world=world)
    profile.step(1, lambda each: each.collective("allreduce", 8, 8, "Float", 5.0, ("9", "shards", list(range(size))),
                                                 **{"Process Group Ranks": text}))
    return write("group.json", json.dumps(profile.document()))


def test_lists_of_ranks_that_pytorch_cut():
    def shown(ranks, last=""):
        return str(ranks)[:-1] + f", ...{last}]"
    for text, size, form in ((shown(list(range(29)), ", 63"), 64, (64, 1)), (shown(list(range(0, 58, 2)), ", 126"), 64, (64, 2)),
                             (shown(list(range(3, 350, 8))[:30], ", 507"), 64, (64, 8)), (shown(list(range(30)), ", 63"), 64, (64, 1)),
                             (shown(list(range(64, 93)), ", 126, 127"), 64, (64, 1))):
        workload, said = imported(group_of(text, size))
        assert [(each["size"], each["stride"]) for each in workload["groups"]] == [form], (text, workload)
        assert "continued with their distance" not in said
    workload, said = imported(group_of(shown(list(range(30))), 64))
    assert workload["groups"][0]["size"] == 64 and "which ranks shards has beyond those that PyTorch wrote" in said
    for text in (shown(list(range(29)), ", 511"), shown([0, 1, 2, 3, 8, 9, 10, 11, *range(16, 37)], ", 127"),
                 shown([0, 2, 3, *range(4, 31)]), shown(list(range(29)), ", 62"), shown(list(range(0, 58, 2)), ", 127")):
        assert "which 64 ranks these are cannot be told" in refused(group_of(text, 64)), text
    for text in ("[0, 1, ..., ..., 63]", "[0, 1 ... 63]", "[0, x, ..., 63]", "..., 63]", "[0, 1, ..., 63"):
        assert "must be a list of numbers" in refused(group_of(text, 64)), text
    for text in (shown(list(range(29)), ", 511"), shown([5, 3, *range(100, 127)], ", 0")):
        assert "groups" not in imported(group_of(text, 512))[0], text


def test_a_group_whose_list_has_other_ranks_than_its_size():
    document = invent.Execution()
    document.collective(1, "allreduce", 8, 8, "Float", ("5", "shards", 0, 2, 4))
    trace = document.document()
    thread = next(each for each in trace["nodes"] if each["name"] != "record_param_comms")

    def listed(ranks):
        groups = json.dumps([{"pg_name": "5", "ranks": ranks}])
        thread.update(name="## process_group:init ##", inputs={"values": [groups], "shapes": [], "types": []})
        return write("listed.json", json.dumps(trace)), "--world", "16"
    assert imported(*listed([0, 4, 8, 12]))[0]["groups"] == [{"name": "shards", "size": 4, "stride": 4}]
    for ranks, count in (([0, 4, 8], 3), ([0, 4, 8, 12, 13], 5), ([0, 4, 8, 8], 3), ([0, 0, 4, 8, 12], 4)):
        assert f"group shards has 4 ranks, and a list of {count}" in refused(*listed(ranks))


# ---- NCCL Inspector ----

def inspector(steps=6, rank=0, pid=4000, kinds=("AllReduce", "AllReduce"), id_="0xa", ranks=8, first=1000, of_all=True):
    """Lines of a job whose steps have a call of 4 MiB and one of 1 MiB. Numbers count within a collective, if not of all."""
    lines, counts, now = [], {}, first + rank
    for _ in range(steps):
        for kind, size in zip(kinds, (4194304, 1048576)):
            number = counts.setdefault(None if of_all else kind, 0)
            counts[None if of_all else kind] += 1
            now += 100
            lines.append({"header": {"id": id_, "rank": rank, "n_ranks": ranks, "nnodes": 2},
                          "metadata": {"inspector_output_format_version": "v4.0", "hostname": "node0", "pid": pid},
                          "coll_perf": {"coll": kind, "coll_sn": number, "coll_msg_size_bytes": size,
                                        "event_trace_ts": {"coll_start_ts": now}}})
    return lines


def sequence(lines, name="sequence.jsonl"):
    return write(name, "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def expect_step(lines, *notes, step=None):
    workload, said = imported(sequence(lines))
    found = calls(workload["events"])
    assert sorted(found) == sorted(step or STEP), (found, said)
    assert all(note in said for note in notes) and said.count("note: ") == len(notes), (notes, said)


def test_reported_sequences():
    for name, note in (("lost-one", "numbers of calls skip before line 6: those are lost"), ("cut-mid", "left out: line 7: no good JSON"),
                       ("two-ranks-one-file", "has calls of ranks 0, 1: those of rank 0 are taken; --rank takes another's")):
        workload, said = imported(f"{READERS}/inspector/{name}.jsonl")
        assert sorted(calls(workload["events"])) == sorted(STEP) and compute_us(workload["events"]) == [100, 100], (name, workload)
        assert note in said, said


def test_one_line_lost_anywhere():
    for kinds, of_all in ((("AllReduce", "AllReduce"), True), (("AllGather", "AllReduce"), True), (("AllGather", "AllReduce"), False)):
        whole = inspector(steps=9, kinds=kinds, of_all=of_all)
        step = calls(imported(sequence(whole))[0]["events"])
        for lost in range(len(whole)):
            workload, said = imported(sequence(whole[:lost] + whole[lost + 1:]))
            assert sorted(calls(workload["events"])) == sorted(step), (kinds, of_all, lost, said)
            assert compute_us(workload["events"]) == [100, 100], (kinds, lost, workload)


def test_several_lines_lost():
    whole = inspector(steps=20)
    for lost in ((10, 11, 12), (5, 30), (9, 20, 33), (1, 38), tuple(range(13, 20))):
        workload, _ = imported(sequence([line for number, line in enumerate(whole) if number not in lost]))
        assert sorted(calls(workload["events"])) == sorted(STEP), lost


def test_numbers_that_skip_in_every_step_are_no_losses():
    """As where a CUDA graph has calls that are not reported."""
    whole = inspector(steps=8)
    expect_step([line for number, line in enumerate(inspector(steps=24)) if number % 6 in (0, 1)])
    for line in whole:
        line["coll_perf"]["coll_sn"] *= 3
    expect_step(whole)
    expect_step(inspector(kinds=("AllGather", "AllReduce"), of_all=False),
                step=[("all_gather", 1048576, "float32", "world"), STEP[1]])


def test_lines_that_are_cut():
    whole = [json.dumps(line) for line in inspector()]
    for bad in (whole[4][:20], whole[4][20:], whole[4][:60] + whole[5][90:], "{}}", "noise"):
        for place in (0, 4, 9):
            expect_step([*whole[:place], bad, *whole[place:]], f"left out: line {place + 1}: no good JSON")
    expect_step([*whole, whole[0][:50]][:-1])
    for number in ("nan", "-inf", "1e999"):
        expect_step([line.replace('"coll_sn"', f'"coll_busbw_gbs": {number}, "coll_sn"') for line in whole])
    said = refused(sequence([*whole[:4], whole[4].replace("4194304", "nan"), *whole[5:]]))
    assert ":5: coll_perf.coll_msg_size_bytes: must be a whole number" in said
    path = write("unended.jsonl", "\n".join([*whole, whole[0][:50]]))
    assert "line 13 was not finished by its writer" in imported(path)[1]


def test_a_lost_header_refuses_the_calls_behind_it():
    marked = read(data("inspector-4.3.log")).split("\n")
    torn = write("torn.log", "\n".join([*marked[:9], marked[9][:60], *marked[10:]]))
    workload, said = imported(torn)
    assert calls(workload["events"]) == calls(events(data("inspector-4.3.log"))) and "left out: line 10: no good JSON" in said
    bad = [*marked[:9], marked[0].replace("0x7f8c", "0x1111")[:50], *marked[9:]]
    assert ":11: a call without the header of its communicator before it" in refused(write("header.log", "\n".join(bad)))


def test_ranks_of_one_file():
    two = [line for pair in zip(inspector(), inspector(rank=1, pid=4001)) for line in pair]
    expect_step(two, "has calls of ranks 0, 1: those of rank 0 are taken")
    four = [line for rank in (7, 3, 5) for line in inspector(rank=rank, pid=4000 + rank)]
    expect_step(four, "has calls of ranks 3, 5, 7: those of rank 3 are taken")
    workload, said = imported(sequence(four), "--rank", "5")
    assert sorted(calls(workload["events"])) == sorted(STEP) and "those of rank 5 are taken" in said
    assert "is of rank 3, not of 6" in refused(sequence(four), "--rank", "6")
    expect_step(inspector() + inspector(rank=1), "has calls of ranks 0, 1: those of rank 0 are taken")
    small = inspector(id_="0xb", ranks=2, first=1050) + inspector(rank=1, id_="0xb", ranks=2, first=1050)
    assert "several ranks of one process and several communicators" in refused(sequence(inspector() + inspector(rank=1) + small))
    # A rank is called otherwise in a smaller communicator; the process tells that it is one.
    step = [*STEP, *(each[:3] + ("group1",) for each in STEP)]
    expect_step(inspector(rank=4) + inspector(rank=0, id_="0xb", ranks=2, first=1050), step=step)


def test_lines_that_are_there_twice():
    whole = inspector()
    expect_step(whole + whole, "left out: lines 13, 14, 15, 16, 17, 18, 19, 20 and 4 more: calls that the file has before")
    expect_step(whole[:3] + whole[2:], "left out: line 4: calls that the file has before")


def test_calls_of_no_bytes_leave_no_gap():
    whole = [line for each in inspector(steps=9) for line in (each, json.loads(json.dumps(each)))]
    for number, line in enumerate(whole):
        line["coll_perf"]["coll_sn"] = number
        line["coll_perf"]["coll_msg_size_bytes"] *= number % 2 == 0
        line["coll_perf"]["event_trace_ts"]["coll_start_ts"] += number % 2
    expect_step(whole, "left out: 18 calls of no elements")


def test_a_torn_line_of_stratus_record_is_refused():
    first, second = read(data("job.calls")).split("\n")[:2]
    for text in (f"{first[:100]}\n{second}\n", f"{first[100:]}\n{second}\n"):
        assert ":1:" in refused(write("torn.calls", text)) and "no good JSON" in refused(write("torn.calls", text))
    assert events(write("good.calls", f"{first}\n{second}\n"))
