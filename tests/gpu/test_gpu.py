# SPDX-License-Identifier: Apache-2.0
"""Tests of tests/gpu/run that need no GPU: jobs of PyTorch on the CPU over gloo, ranks that fail, verdicts, FSDP by a stand-in."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types

import job
import verdict
from tap import Skip

RUN = os.path.join(job.HERE, "run")
FIVE = [2.0, 1.5, 1.25, 1.0, 0.5]


def program():
    """tests/gpu/run as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_run", RUN)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


def needs_torch():
    why = program().lacking(is_cpu=True)
    if why:
        raise Skip(why)


def found(ranks, losses=None, wrong=0, rate=10.0):
    return [{"ddp": {"losses": losses or FIVE, "steps_per_second": rate + rank}, "fsdp": {"skipped": "none here"},
             "bandwidth": {"gbps": 2 * rate, "wrong_values": wrong}} for rank in range(ranks)]


def failed_checks(*arguments):
    check = verdict.Check()
    verdict.check_job(check, "a job", *arguments)
    return [f"{each['check']}: {each['detail']}" for each in check.failed]


def quietly(function, *arguments):
    with contextlib.redirect_stderr(io.StringIO()):
        return function(*arguments)


# ---- verdicts ----

def test_two_ranks_must_agree_in_every_bit():
    almost = [*FIVE[:4], FIVE[4] * (1 + 1e-7)]
    assert not failed_checks(found(2), ("socket", found(2)))
    assert failed_checks(found(2, almost), ("socket", found(2))) == [
        f"a job: ddp has the losses of socket: rank 0, step 4: {almost[4]!r} and 0.5, of 2 ranks, must be the same"]


def test_four_ranks_may_add_in_another_order():
    assert not failed_checks(found(4, [*FIVE[:4], FIVE[4] * (1 + 1e-6)]), ("socket", found(4)))
    assert len(failed_checks(found(4, [*FIVE[:4], FIVE[4] * 1.01]), ("socket", found(4)))) == 1
    assert len(failed_checks(found(4, [*FIVE[:4], float("nan")]), ("socket", found(4)))) == 2  # nor is it learning


def test_what_is_wrong_is_found():
    assert failed_checks(found(2, wrong=3), None) == ["a job: AllReduce is exact: 6 wrong values"]
    assert failed_checks(found(2, losses=[1.0, 1.0, 2.0]), None) == ["a job: ddp learns: [1.0, 1.0, 2.0]"]


def test_the_network_is_what_nccl_says():
    log = "x:1:2 [0] NCCL INFO Using network stratus\n"
    assert verdict.network_of(log) == "stratus" and verdict.network_of("no word") is None
    for transport, said, is_good in (("stratus-inline", "stratus", True), ("socket-2x8", "Socket", True), ("stratus", "Socket", False),
                                     ("socket", "IB", False)):
        check = verdict.Check()
        verdict.check_network(check, "a job", transport, [log, log.replace("stratus", said)] if is_good and said == "stratus" else
                              [log.replace("stratus", said)])
        assert not check.failed == is_good, (transport, said)


def test_ratios_are_of_the_slowest_rank():
    rates = {"socket": verdict.rates(found(2, rate=10)), "stratus": verdict.rates(found(2, rate=25))}
    assert rates["socket"] == {"ddp": 10, "bandwidth": 20}
    assert verdict.ratios(rates, "socket") == {"stratus": {"ddp": 2.5, "bandwidth": 2.5}}
    assert verdict.ratios(rates, "socket-2x8") == {}


# ---- jobs ----

def run_ranks(text, limit_s=60.0, variables=None):
    """A job of two ranks of this program; how it fails."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "rank.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import json, os, sys, time\nrank = int(os.environ['RANK'])\n" + text)
        try:
            return job.run(job.Here(), 2, "gloo", ["ddp"], variables or {"MINE": "7"}, os.path.join(directory, "job"), limit_s, path)
        except job.Failed as error:
            return str(error)


def test_each_rank_is_a_host():
    text = "json.dump({name: os.environ[name] for name in ('NCCL_HOSTID', 'WORLD_SIZE', 'MINE')}, open(sys.argv[2], 'w'))"
    ranks, _ = run_ranks(text)
    assert [rank["NCCL_HOSTID"] for rank in ranks] == ["emulated-0", "emulated-1"]
    assert all(rank["WORLD_SIZE"] == "2" and rank["MINE"] == "7" for rank in ranks)


def test_a_rank_that_fails_ends_the_job():
    said = run_ranks("if rank == 1: print('why it failed'); sys.exit(3)\ntime.sleep(600)")
    assert said.startswith("rank 1 ended with status 3; its log ends:") and "why it failed" in said, said


def test_a_job_that_hangs_ends():
    assert run_ranks("time.sleep(600)", limit_s=0.5).startswith("not over within 0 s"), "no limit"


SLEEPING_RANK = "open(os.path.join(os.environ['PIDS'], str(rank)), 'w').write(str(os.getpid()))\ntime.sleep(600)"


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def test_ranks_end_with_the_program():
    code = ("import test_gpu; test_gpu.program().end_ranks_on_signals(); "
            "test_gpu.run_ranks(test_gpu.SLEEPING_RANK, variables={'PIDS': sys.argv[1]})")
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen([sys.executable, "-B", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}", directory])
        try:
            until(lambda: len(os.listdir(directory)) == 2 and all(os.stat(os.path.join(directory, name)).st_size for name in "01"))
            pids = [int(pathlib.Path(directory, name).read_text(encoding="utf-8")) for name in "01"]
            assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
            process.terminate()
            assert process.wait(60) == 143
        finally:
            process.kill()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


# NCCL itself, on the emulated GPU: a rank is coll.
COLL_RANK = """
import subprocess
root = os.environ["ROOT"]
libraries = [root + "/build/fake_cuda/lib/sid", root + "/build/fake_cuda/lib", os.environ["LD_LIBRARY_PATH"]]
environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "COLL_ADDR": "127.0.0.1:29561", "FAKE_CUDA_WAIT_FOR_PROXY": "1"}
command = [root + "/build/tests/coll/coll", "-O", "all_reduce", "-b", "64K", "-e", "64K", "-n", "2", "-w", "1", "-c", "1"]
status = subprocess.call(command, env=environment)
json.dump({}, open(sys.argv[2], "w"))
sys.exit(status)
"""


def test_nccl_uses_the_transport_of_each_job():
    """Two hosts to NCCL that have one address and one GPU, as its bus says, with the variables of the jobs."""
    for name in ("build/fake_cuda/lib/sid/libnccl.so.2", "build/lib/libnccl-net-stratus.so", "build/tests/coll/coll"):
        if not os.path.exists(os.path.join(job.ROOT, name)):
            raise Skip(f"{name} is missing: make coll nccl SUITE=sid")
    for name, variables in program().TRANSPORTS.items():
        if name.startswith("gloo"):
            continue
        ended = run_ranks(COLL_RANK, variables={"ROOT": job.ROOT, **variables})
        assert not isinstance(ended, str), f"{name}: {ended}"
        check = verdict.Check()
        verdict.check_network(check, name, name, ended[1])
        assert not check.failed, check.failed


def parts(plan, within_s=300.0):
    """What the run says of these parts, on the CPU."""
    with tempfile.TemporaryDirectory() as directory:
        run = program().Run(True, within_s, plan, directory)
        return quietly(run.run), run.check.failed


def test_training_on_the_cpu():
    needs_torch()
    result, failed = parts((("uncapped-2", False, 2, ("gloo", "gloo-again"), ("ddp", "fsdp", "bandwidth")),))
    assert not failed, failed
    assert len(result["checks"]) >= 7 and result["parts"]["uncapped-2"]["rates"]["gloo"]["ddp"] > 0
    assert set(result["parts"]["uncapped-2"]["against"]["gloo"]["gloo-again"]) >= {"ddp", "bandwidth"}
    json.dumps(result)


def test_training_on_capped_hosts():
    needs_torch()
    why = program().no_hosts()
    if why:
        raise Skip(why)
    result, failed = parts((("capped-4", True, 4, ("gloo", "gloo-again"), ("ddp", "bandwidth")),))
    assert not failed, failed
    assert result["parts"]["capped-4"]["ranks"] == 4 and not result["skipped"], result["skipped"]
    # 4 MB through flows of 0.5 Gb/s: gloo has one for each pair.
    assert result["parts"]["capped-4"]["rates"]["gloo"]["bandwidth"] < 0.5


def test_without_hosts_it_goes_on_by_loopback():
    run_py = program()
    run_py.no_hosts = lambda: "emulated hosts need root"
    seen = []
    run_py.Run.part = lambda self, part, place, *_: seen.append((part, type(place).__name__))
    with tempfile.TemporaryDirectory() as directory:
        run = run_py.Run(True, 60.0, run_py.plan_for(True), directory)
        result = quietly(run.run)
    assert seen == [("loopback-2", "Here"), ("uncapped-2", "Here"), ("loopback-4", "Here")]
    assert {"what": "caps of capped-4", "why": "emulated hosts need root"} in result["skipped"]


def test_without_time_nothing_begins():
    result, failed = parts((("uncapped-2", False, 2, ("gloo",), ("ddp",)),), within_s=1.0)
    assert not failed and result["skipped"] == [{"what": "uncapped-2 gloo", "why": "no time is left"}]


# ---- FSDP: neither Debian's PyTorch nor gloo has it, so a stand-in says how it is called ----

def sharded(functions):
    """The calls that train.Rank.fsdp makes of a torch.distributed.fsdp with these functions."""
    needs_torch()
    import train  # pylint: disable=import-outside-toplevel
    rank = object.__new__(train.Rank)
    rank.backend, rank.device = "gloo", train.torch.device("cpu")
    stand_in = types.ModuleType("torch.distributed.fsdp")
    vars(stand_in).update(functions)
    before = sys.modules.get(stand_in.__name__), vars(train.torch.distributed).get("fsdp")
    sys.modules[stand_in.__name__] = train.torch.distributed.fsdp = stand_in
    try:
        return rank.fsdp()
    finally:
        del sys.modules[stand_in.__name__]
        if before[0]:
            sys.modules[stand_in.__name__] = before[0]


def test_fsdp_shards_blocks_then_all():
    calls = []
    model = sharded({"fully_shard": calls.append})
    assert calls == [*model, model] and len(model) == 2


def test_fsdp_of_older_releases_wraps():
    needs_torch()
    import train  # pylint: disable=import-outside-toplevel

    class Wrapped(train.nn.Module):
        def __init__(self, module, device_id):
            super().__init__()
            self.module, self.device_id = module, device_id

        def forward(self, x):
            return self.module(x)
    model = sharded({"FullyShardedDataParallel": Wrapped})
    assert isinstance(model, Wrapped) and all(isinstance(block, Wrapped) for block in model.module)
    assert model(train.torch.ones(3, 64)).shape == (3, 64)


# ---- the program ----

def test_without_a_gpu_it_says_why():
    if not program().lacking(is_cpu=False):
        raise Skip("there is a GPU")
    done = subprocess.run([RUN], capture_output=True, text=True, check=False)
    assert done.returncode == 77 and done.stdout.startswith("1..0 # SKIP "), done
    assert "no GPU" in done.stdout or "no PyTorch" in done.stdout, done.stdout


def test_wrong_use_is_told():
    done = subprocess.run([RUN, "--fast"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--fast" in done.stderr, done
