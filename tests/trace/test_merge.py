# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler of several ranks that do not do the same, merged and replayed."""
import json

import invent
from imported import calls, compute_us, exchanges, imported, of_rank, refused, waits
from test_replay import NCCL, coll, need_coll
from tool import read, scratch, write


def traces(name, step, world):
    return [write(f"{name}.{rank}.json", invent.lines_of(document, "traceEvents"))
            for rank, document in enumerate(invent.of_ranks(step, world))]


def test_a_pipeline():
    workload, said = imported(*traces("stage", invent.stage_step, 4))
    assert workload["groups"] == [{"name": "2x2", "size": 2, "stride": 2}, {"name": "mesh_dp", "size": 2, "stride": 1}], workload["groups"]
    assert "step ProfilerStep#5 of 4 ranks; rank 0: 2 exchange, 2 all_reduce" in said, said
    for rank in range(4):
        found = of_rank(workload["events"], rank)
        if rank < 2:
            assert exchanges(found) == [("bfloat16", "2x2", [("send", 1, 4096)]),
                                        ("bfloat16", "2x2", [("send", 1, 4096), ("recv", 1, 4100)])]
            assert compute_us(found) == [100, 100, 200] and waits(found) == [found[3]["id"]], found
        else:
            assert exchanges(found) == [("bfloat16", "2x2", [("recv", 0, 4096)]),
                                        ("bfloat16", "2x2", [("send", 0, 4100), ("recv", 0, 4096)])]
            assert compute_us(found) == [300, 300]
        assert calls(found) == [("all_reduce", 10000 + rank // 2, "float32", "mesh_dp"), ("all_reduce", 1, "float32", "world")]
    ids = [event["id"] for event in workload["events"] if "id" in event]
    assert sorted(set(ids)) == list(range(1, 17)) == ids


def test_experts_of_uneven_sizes():
    workload, _ = imported(*traces("expert", invent.expert_step, 3))
    for rank, sent in enumerate(invent.EXPERT_SPLITS):
        found = of_rank(workload["events"], rank)
        (kind, group, parts), = exchanges(found)
        received = [row[rank] for row in invent.EXPERT_SPLITS]
        assert (kind, group) == ("bfloat16", "world") and waits(found) == [found[1]["id"]]
        assert [part for part in parts if part[0] == "send"] == [("send", peer, count) for peer, count in enumerate(sent) if count]
        assert [part for part in parts if part[0] == "recv"] == [("recv", peer, count) for peer, count in enumerate(received) if count]


def test_merged_traces_are_replayed():
    """Nothing is wrong, and rank 0 does what its trace says."""
    need_coll()
    for name, step, world in (("stage", invent.stage_step, 4), ("expert", invent.expert_step, 3)):
        path, results = scratch(f"{name}.json"), scratch(f"{name}-results.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(imported(*traces(name, step, world))[0], file)
        coll("--hosts", f"local:{world}", "--replay", path, "--replay-steps", "1", "--replay-skip", "0", "-T", "100", "--json", results,
             NCCL_HOME=NCCL)
        found, = json.loads(read(results))["workloads"]
        assert found["wrong"] == 0 and found["collectives"] == (4 if name == "stage" else 1), found


def test_ranks_that_do_the_same_are_one():
    """One of them is taken, as without point-to-point."""
    workload, said = imported(*traces("ddp", invent.ddp_step, 2))
    assert not any("only" in event for event in workload["events"]) and "of 2 ranks" not in said


def test_ranks_that_are_missing_or_there_twice():
    paths = traces("stage", invent.stage_step, 4)
    assert "ranks send to each other, so the traces of all 4 are needed; missing: 1, 3" in refused(paths[0], paths[2])
    again = write("again.json", read(paths[1]))
    assert f"is of rank 1, and so is {paths[1]}" in refused(*paths, again)
    for options in ((paths[2],), (*paths, "--rank", "2")):
        assert "sends and receives: give the traces of all ranks, or leave them out with --skip send,recv" in refused(*options)
    found = imported(*paths, "--rank", "2", "--skip", "send,recv")[0]["events"]
    assert calls(found) == [("all_reduce", 10001, "float32", "mesh_dp"), ("all_reduce", 1, "float32", "world")]


def test_peers_that_cannot_be():
    paths = traces("stage", invent.stage_step, 4)
    for old, new, says in (('"Dst Rank": 2', '"Dst Rank": 3', ": its Dst Rank is 3, which is not in its group"),
                           ('"Rank": 1, "Dst Rank": 2', '"Rank": 5', ": its peer is 5, of a group of 2"),
                           ('"In msg nelems": 4096', '"In msg nelems": -1', ".args.In msg nelems: must be a whole number")):
        text = read(paths[0])
        assert old in text, old
        said = refused(write("peer.json", text.replace(old, new)), *paths[1:])
        assert ":" in said and "traceEvents[" in said and says in said, said


def test_receives_that_differ_are_found_before_anything_runs():
    need_coll()
    paths = traces("stage", invent.stage_step, 4)
    paths[2] = write("short.json", read(paths[2]).replace('"In msg nelems": 4096, "Out msg nelems": 4096',
                                                          '"In msg nelems": 4000, "Out msg nelems": 4000'))
    path = scratch("short-workload.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(imported(*paths)[0], file)
    assert "rank 0 sends 4096 elements of bfloat16, and rank 2 receives 4000" in coll("--replay", path, "--replay-list", "4", status=2)
