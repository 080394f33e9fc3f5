#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the invented inputs of tests/data/trace anew; the same ones each time. Nobody measured them.

usage: tests/trace/invent.py

The formats are those of the readers in tuner_plugin/tools/trace, which name their sources."""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../data/trace")
MAIN, LAUNCH_US = 7, 4.0  # the compute stream; how long a call of the host takes


class Profile:
    """A profiler's trace of one rank: a host that launches, a compute stream, and a stream for each process group."""

    def __init__(self, rank=0, world=8, has_sync=False):
        self.rank, self.world, self.has_sync = rank, world, has_sync
        self.host = self.number = 0
        self.free = {MAIN: 0.0}  # stream: when its last work ends
        self.events, self.streams, self.begun = [], {}, {}

    def add(self, name, category, begin, duration, pid=4242, tid=4242, **args):
        self.number += 1
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": round(begin, 3),
                            "dur": round(duration, 3), "args": {"External id": self.number, **args}})
        return self.events[-1]

    def on_gpu(self, name, category, duration, stream, begin, **args):
        """Work for a stream that may begin then: returns its end."""
        correlation = self.number + 1
        self.add("cudaLaunchKernel", "cuda_runtime", self.host, LAUNCH_US, cbid=211, correlation=correlation)
        begin = max(begin, self.free.get(stream, 0.0), self.host + LAUNCH_US)
        self.add(name, category, begin, duration, 0, stream, device=0, stream=stream, correlation=correlation, **args)
        self.free[stream] = begin + duration
        self.host += LAUNCH_US
        return self.free[stream]

    def kernel(self, duration, name="gemm_f16", category="kernel", stream=MAIN):
        self.on_gpu(name, category, duration, stream, 0.0)

    def collective(self, name, given, received, kind, duration, group=("0", "default_pg", None), **more):
        ranks = group[2] or list(range(self.world))
        stream = self.streams.setdefault(group[0], 20 + len(self.streams))
        facts = {"Collective name": name, "In msg nelems": given, "Out msg nelems": received, "Group size": len(ranks),
                 "dtype": kind, "In split size": "[]", "Out split size": "[]", "Process Group Name": group[0],
                 "Process Group Description": group[1], "Process Group Ranks": self.ranks_text(ranks), **more}
        operator = self.add("record_param_comms", "cpu_op", self.host, 3 * LAUNCH_US, **facts)
        self.host += LAUNCH_US
        if duration is None:  # its kernel is launched later
            return stream
        self.on_gpu(f"ncclDevKernel_{name}_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "kernel", duration, stream, self.free[MAIN],
                    **{"External id": operator["args"]["External id"]}, **facts)
        self.host += LAUNCH_US
        self.begun[stream] = self.free[stream]
        return stream

    @staticmethod
    def ranks_text(ranks):
        return str(ranks) if len(ranks) <= 30 else str(ranks[:30])[:-1] + ", ...]"

    def wait(self, stream):
        """The compute stream waits for what was begun on another one."""
        correlation = self.number + 2
        self.add("cudaStreamWaitEvent", "cuda_runtime", self.host, 1.0, cbid=147, correlation=correlation)
        if self.has_sync:
            self.add("Stream Wait Event", "cuda_sync", self.host, 1.0, 0, MAIN, cuda_sync_kind="Stream Wait Event",
                     wait_on_stream=stream, wait_on_cuda_event_record_corr_id=0, stream=MAIN, correlation=correlation)
        self.host += 1.0
        self.free[MAIN] = max(self.free[MAIN], self.begun[stream])

    def step(self, number, work):
        begin = self.host
        work(self)
        self.host = max(self.host, *self.free.values())  # cudaDeviceSynchronize
        self.add(f"ProfilerStep#{number}", "user_annotation", begin, self.host - begin)

    def document(self):
        return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
                "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.world},
                "traceEvents": self.events, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1711964646000000000}


DDP_BUCKETS = (262144, 6553600, 3000001)


def ddp_step(profile):
    """Forward, three buckets during backward, and an optimizer that waits for all of them."""
    for duration in (210.0, 340.5):
        profile.kernel(duration)
    for elements in DDP_BUCKETS:
        profile.kernel(500.25)
        stream = profile.collective("allreduce", elements, elements, "Float", elements / 5e3)
    profile.wait(stream)
    profile.kernel(75.125, "multi_tensor_apply_kernel")


def ddp():
    profile = Profile()
    for number in (10, 11, 12):
        profile.step(number, ddp_step)
    return profile.document()


def hybrid_step(profile):
    """Rank 5 of 16: tensor parallelism of 4 neighbours, FSDP over every fourth rank, a broadcast over all."""
    tensor, shards = ("3", "mesh_tp", [4, 5, 6, 7]), ("4", "mesh_fsdp", [1, 5, 9, 13])
    whole = profile.collective("_allgather_base", 1048576, 4194304, "BFloat16", 120.0, shards)
    for _ in range(2):
        profile.kernel(400.0)
        profile.wait(profile.collective("allreduce", 524288, 524288, "BFloat16", 90.0, tensor))
    profile.wait(whole)
    profile.kernel(800.0)
    profile.collective("_reduce_scatter_base", 4194304, 1048576, "Float", 150.0, shards)
    profile.wait(profile.collective("all_to_allv", 65536, 65536, "Half", 30.0, tensor,
                                    **{"In split size": "[16384, 16384, 16384, 16384]"}))
    profile.kernel(20.0, "Memcpy DtoD (Device -> Device)", "gpu_memcpy")
    profile.collective("broadcast", 1, 1, "Long", 8.0, Rank=3)


def hybrid():
    profile = Profile(rank=5, world=16, has_sync=True)
    for number in (3, 4):
        profile.step(number, hybrid_step)
    return profile.document()


# ---- execution traces of newer releases ----

class Execution:
    def __init__(self):
        self.nodes, self.number = [], 1
        self.node("[pytorch|profiler|execution_trace|thread]")

    def node(self, name, inputs=(), kinds=(), **attributes):
        self.number += 1
        attrs = {"rf_id": self.number - 1, "scope": 7, "tid": 1, **attributes}
        self.nodes.append({"id": self.number, "name": name, "ctrl_deps": 1,
                           "inputs": {"values": list(inputs), "shapes": [[]] * len(inputs), "types": list(kinds)},
                           "outputs": {"values": [], "shapes": [], "types": []},
                           "attrs": [{"name": key, "type": "string" if isinstance(value, str) else "uint64", "value": value}
                                     for key, value in attrs.items()]})

    def collective(self, seq, name, given, received, kind, group=("0", "default_pg", 0, 1, 8), root=0):
        tensor = [[self.number + 1, 5, 0, given, 4, "cuda:0"]]
        self.node("record_param_comms", [tensor, seq, [group[0], group[1]], root, name, [], [], *group[2:]],
                  ["GenericList[Tensor(float)]", "Int", "Tuple[String,String]", "Int", "String", "GenericList[]",
                   "GenericList[]", "Int", "Int", "Int"],
                  collective_name=name, dtype=kind, in_msg_nelems=given, out_msg_nelems=received, in_split_size="[]",
                  out_split_size="[]", global_rank_start=group[2], global_rank_stride=group[3], pg_name=group[0],
                  pg_desc=group[1], pg_size=group[4])

    def wait(self, seq):
        self.node("record_param_comms", [seq, ["", ""], 1, "wait", [], [], -1, -1, 1],
                  ["Int", "Tuple[String,String]", "Int", "String", "GenericList[]", "GenericList[]", "Int", "Int", "Int"],
                  collective_name="wait", dtype="Byte", in_msg_nelems=0, out_msg_nelems=0, pg_size=1)

    def document(self):
        # As PyTorch does: an operator is written when it ends, so that nodes are in no order.
        return {"schema": "1.1.1-chakra.0.0.4", "pid": 4242, "time": "2026-11-24 23:00:00", "start_ts": 100,
                "nodes": sorted(self.nodes, key=lambda node: (node["id"] % 3, node["id"])), "finish_ts": 200}


def execution():
    trace = Execution()
    for number in (6, 7):
        trace.node(f"ProfilerStep#{number}")
        trace.collective(40 + number, "broadcast", 53, 53, "Long", root=2)
        trace.wait(40 + number)
        for bucket, elements in enumerate(DDP_BUCKETS):
            trace.node("aten::mm")
            trace.collective(100 * number + bucket, "allreduce", elements, elements, "Float")
        trace.collective(900 + number, "_allgather_base", 4096, 8192, "BFloat16", ("2", "mesh_tp", 0, 1, 2))
    return trace.document()


# ---- sequences ----

def record_lines():
    """Two communicators of a process on one of 4 nodes of 8: all ranks, and the 4 that are first on their node."""
    world, first, now = [], [], 1000.0
    for _ in range(12):
        for gap, calls, collective, size in ((9000.0, world, "allreduce", 1048576), (1500.5, world, "allreduce", 26214400),
                                             (700.25, first, "allgather", 4 * 8192), (650.0, world, "allreduce", 12000004)):
            now += gap
            calls.append([now, collective, size])
    world.append([now + 100, "allreduce", 8])  # something at the end
    return "".join(json.dumps({"format": "stratus-calls", "version": 1, "ranks": ranks, "nodes": 4, "nccl": 22809, "dropped": 0,
                               "calls": calls}) + "\n" for ranks, calls in ((4, first), (32, world)))


def inspector_lines(is_marked, is_verbose=True):
    """Of a rank of 16 on 2 nodes. `is_marked`: from v4.3 on the header comes once, before its calls."""
    header = {"header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 16, "nnodes": 2},
              "metadata": {"inspector_output_format_version": "v4.3" if is_marked else "v4.0", "git_rev": "",
                           "rec_mechanism": "nccl_profiler_interface", "dump_timestamp_us": 1748030377748202,
                           "hostname": "node0", "pid": 77}}
    calls, now, number = [], 1752867229235059, 0
    for _ in range(6):
        for gap, name, size in ((8000, "AllGather", 262144), (2000, "AllGather", 524288), (1000, "ReduceScatter", 262144),
                                (400, "AllReduce", 4100)):
            now, number = now + gap, number + 1
            perf = {"coll": name, "coll_sn": number, "coll_msg_size_bytes": size, "coll_exec_time_us": 61, "coll_algobw_gbs": 1.0,
                    "coll_busbw_gbs": 1.5}
            perf |= {"event_trace_ts": {"coll_start_ts": now, "coll_stop_ts": now + 5, "kernel_events": []}} if is_verbose else {}
            calls.append({**({} if is_marked else header), "coll_perf": perf})
    marker = {**header, "dump_stats": {"coll_records": len(calls), "coll_dropped_total": 0, "p2p_records": 0}}
    return "".join(json.dumps(line) + "\n" for line in ([marker] if is_marked else []) + calls)


# ---- pipelines and experts, of each rank ----

STAGE_GROUP = ("7", "undefined", [0, 2]), ("8", "undefined", [1, 3])


def coalesced(profile, transfers, group):
    """Sends and receives that c10d gives to NCCL as one, whose kernel is launched at the end: (name, place of the peer, elements)."""
    marks = {"Process Group Name": group[0], "Process Group Description": group[1]}
    profile.add("record_param_comms", "cpu_op", profile.host, 1.0, **{"Collective name": "start_coalescing"}, **marks)
    profile.host += 1.0
    for name, peer, elements in transfers:
        key = "Dst Rank" if name == "send" else "Src Rank"
        profile.collective(name, elements, elements, "BFloat16", None, group, Rank=peer, **{key: group[2][peer]})
    end = profile.add("record_param_comms", "cpu_op", profile.host, 3 * LAUNCH_US, **{"Collective name": "end_coalescing"}, **marks)
    profile.host += LAUNCH_US
    stream = profile.streams.setdefault(group[0], 20 + len(profile.streams))
    profile.on_gpu("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "kernel", 12.0, stream, profile.free[MAIN],
                   **{"External id": end["args"]["External id"]})
    profile.host += LAUNCH_US
    profile.begun[stream] = profile.free[stream]
    return stream


def stage_step(profile):
    """Two stages of two ranks, one forward one backward of two microbatches; a sum over each stage's ranks and over all."""
    stage, group = profile.rank // 2, STAGE_GROUP[profile.rank % 2]
    data = ("5", "mesh_dp", [0, 1] if stage == 0 else [2, 3])
    if stage == 0:
        profile.kernel(100.0)
        profile.collective("send", 4096, 4096, "BFloat16", 9.0, group, Rank=1, **{"Dst Rank": group[2][1]})
        profile.kernel(100.0)
        profile.wait(coalesced(profile, [("send", 1, 4096), ("recv", 1, 4100)], group))
        profile.kernel(200.0)
    else:
        profile.wait(profile.collective("recv", 4096, 4096, "BFloat16", 9.0, group, Rank=0, **{"Src Rank": group[2][0]}))
        profile.kernel(300.0)
        profile.wait(coalesced(profile, [("send", 0, 4100), ("recv", 0, 4096)], group))
        profile.kernel(300.0)
    profile.collective("allreduce", 10000 + stage, 10000 + stage, "Float", 50.0, data)
    profile.collective("allreduce", 1, 1, "Float", 5.0)


# Elements that rank i sends to rank j.
EXPERT_SPLITS = [[10, 20, 0], [1, 2, 3], [0, 7, 9]]


def expert_step(profile):
    sent = EXPERT_SPLITS[profile.rank]
    received = [row[profile.rank] for row in EXPERT_SPLITS]
    profile.kernel(10.0)
    profile.wait(profile.collective("all_to_allv", sum(sent), sum(received), "BFloat16", 20.0,
                                    **{"In split size": str(sent), "Out split size": str(received)}))
    profile.kernel(10.0)


def of_ranks(step, world):
    """Documents of profiler traces, one for each rank."""
    profiles = [Profile(rank, world, has_sync=True) for rank in range(world)]
    for profile in profiles:
        for number in (4, 5):
            profile.step(number, step)
    return [profile.document() for profile in profiles]


# ---- SimAI ----

# Of 16 GPUs: 2 share tensors, 2 stages, so 4 are data parallel, which 2 experts divide.
SIMAI = """\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 8388608.0
6
grad_gather\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t65536\t100
moe_grad_norm\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tREDUCESCATTER_DP_EP\t4096\t100
embedding_layer     -1 556000  ALLREDUCE   16384      1       NONE 0        1500      NONE   0      1
attention_column\t-1\t1750000\tALLGATHER\t8192\t875000\tREDUCESCATTER\t0\t875000\tNONE\t0\t100
mlp_moelayer\t-1\t0\tALLTOALL_EP\t12288\t0\tALLTOALL_EP\t12290\t1\tNONE\t0\t100
mlp_row\t-1\t660348\tREDUCESCATTER\t8192\t660348\tALLGATHER\t8192\t660348\tALLREDUCE\t40000\t100
"""


def write(name, text):
    with open(os.path.join(DATA, name), "w", encoding="utf-8") as file:
        file.write(text)


def lines_of(document, key):
    """One entry a line, as PyTorch writes them."""
    head, tail = json.dumps({**document, key: None}).split(f'"{key}": null')
    return f'{head}"{key}": [\n' + ",\n".join(map(json.dumps, document[key])) + f"\n]{tail}\n"


def main():
    os.makedirs(DATA, exist_ok=True)
    write("ddp.json", lines_of(ddp(), "traceEvents"))
    write("hybrid.json", lines_of(hybrid(), "traceEvents"))
    write("execution.json", lines_of(execution(), "nodes"))
    write("job.calls", record_lines())
    write("inspector-4.0.log", inspector_lines(False))
    write("inspector-4.3.log", inspector_lines(True))
    write("simai.txt", SIMAI)


if __name__ == "__main__":
    main()
