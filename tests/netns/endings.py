# SPDX-License-Identifier: Apache-2.0
"""endings: cases of the test script faults that end a job, or nearly: ranks that die or are stopped, paths that
carry no data."""

import os
import signal

import victim
from trial import FLOWS, NIC_GBPS, add_case, fails, survives


# ---- faults of processes ----

def says_who():
    """What an error has to name: the peer's host and address, the NIC, the request, and how long."""
    return [r"\w+ \(10\.77\.0\.[12]\b", r"\beth0\b", r"\brequest", r"\b\d+(\.\d+)? (s|ms)\b"]


def kill_rank(host):
    return lambda _, job: os.kill(job.pid(host), signal.SIGKILL)


def kill_slowly(host):
    """As where a kernel takes memory away for a second before it closes a process's sockets, which get bytes meanwhile."""
    def damage(_, job):
        os.kill(job.pid(host), signal.SIGSTOP)
        job.run_for(1)
        os.kill(job.pid(host), signal.SIGKILL)
    return damage


def stop(host):
    """Stops a rank within a round of operations. Between two rounds the others wait for it outside NCCL, and stratus has
    nothing to report (3 of 50 stops)."""
    def damage(_, job):
        pid = job.pid(host)
        while True:
            os.kill(pid, signal.SIGSTOP)
            job.run_for(0.2)
            if len(job.completions()) % victim.ROUND != 0:
                return
            os.kill(pid, signal.SIGCONT)
            job.run_for(0.1)
    return damage


def go_on(host):
    return lambda _, job: os.kill(job.pid(host), signal.SIGCONT)


# No timeout may be what ends it.
PATIENT = {"STRATUS_LINK_TIMEOUT": "60s"}
GONE = [r"10\.77\.0\.3\b", "process is gone"]

fails("kill-peer", "A rank killed: the other one hears of it once its flows are closed and dials are refused.",
      kill_slowly(1), 0.5, [r"\w+ \(10\.77\.0\.2\b", r"\beth0\b", "process is gone"], [0], env=PATIENT, is_quick=True)
fails("kill-1-of-4", "A rank of a ring killed: those that have no connection to it are told by those that have.",
      kill_rank(2), 5, GONE, [0, 1, 3], env=PATIENT, hosts=4)
fails("kill-1-of-8", "The same with 8 hosts.", kill_rank(2), 5, GONE, [0, 1, 3, 4, 5, 6, 7], env=PATIENT, hosts=8)
fails("kill-1-of-4-tree", "The same for a tree.", kill_rank(2), 5, GONE, [0, 1, 3], env={**PATIENT, "NCCL_ALGO": "tree"},
      hosts=4)
fails("kill-1-of-4-alltoall", "The same where each host has a connection to each.", kill_rank(2), 5, GONE, [0, 1, 3],
      env=PATIENT, hosts=4, more=["-O", "alltoall"])
fails("kill-1-of-4-encrypted", "The same with encryption.", kill_rank(2), 5, GONE, [0, 1, 3],
      env={**PATIENT, "STRATUS_ENCRYPT": "on"}, hosts=4)
fails("end-1-of-4", "A rank of 4 is told to end, as by a scheduler, and does so without a word.",
      lambda _, job: os.kill(job.pid(2), signal.SIGTERM), 5, GONE, [0, 1, 3], env=PATIENT, hosts=4)
fails("kill-sender",
      "The same where the other one only receives: no dial of its own tells, but those of its other connection do.",
      kill_rank(1), 5, [r"\w+ \(10\.77\.0\.2\b", r"\beth0\b"], [0], sender=1, more=["-O", "broadcast", "-r", "1"])
survives("stop-peer-5s", "A rank stopped (a debugger, say) for 5 s under load: longer than the deadline (here 2 s) of a host "
         "that does not answer. It is named, and goes on.",
         stop(1), go_on(1), hold_s=5, env={"STRATUS_LINK_TIMEOUT": "2s"},
         says=[r"\w+ \(10\.77\.0\.2\b.* is stopped", r"\beth0\b", r"\brequest", r"not for \d\.\d s"])
survives("stop-peer-20s", "The same for 20 s, with the deadline as it comes.", stop(1), go_on(1), hold_s=20,
         says=[r"\w+ \(10\.77\.0\.2\b.* is stopped"])
fails("stop-peer", "A rank stopped for longer than a host that answers has (here 4 s).", stop(1), 4,
      [r"\w+ \(10\.77\.0\.2\b", r"\beth0\b", r"\b\d+(\.\d+)? (s|ms)\b", "its process does not"], [0],
      {"STRATUS_LINK_TIMEOUT": "2s", "STRATUS_STOPPED_TIMEOUT": "4s"}, repair=go_on(1))


# ---- paths that carry no data ----

def spoil(fault, *words):
    """What arrives at host 1, of all flows that there are or will be."""
    return lambda cluster, _: cluster.fault(fault, 1, f"{victim.PORTS[0]}-{victim.PORTS[-1]}", *words)


# Flows connect and bring nothing across: who sends says so at half of the timeout or after 5 s, and at its end.
NO_DATA = {"says": [r"10\.77\.0\.[12]\b", "data does not pass"], "warns": [r"10\.77\.0\.[12]\b.* data does not pass", "MTU"],
           "survivors": [0, 1]}


def no_data(name, fault, env=(), flows=FLOWS, is_quick=False, **more):
    def run(test):
        # A host that gets no CPU for 100 ms, or a peer not heard for 300, begins its lanes' clocks anew (link/link_time.c):
        # on a busy machine it takes longer than the timeout. And NCCL sets up what it needs meanwhile.
        test.fails(fault, 10, env={"STRATUS_LINK_TIMEOUT": "10s", **dict(env)}, flows=flows, slack_s=25.0,
                   **{**NO_DATA, **more})
    add_case(name, f"Only {'small packets' if 'large' in name else 'the first packets of a flow'} arrive"
             f"{' from the start' if 'start' in name else ''}: the job ends, and says why.", run, is_quick)


ONE_FLOW = {"env": {"STRATUS_FLOWS": "1"}, "flows": 1}
no_data("large-700", spoil("large", 700), is_quick=True)
no_data("large-700-1-flow", spoil("large", 700), **ONE_FLOW)
no_data("large-700-start", spoil("large", 700), from_start=True)
no_data("large-700-start-1-flow", spoil("large", 700), from_start=True, **ONE_FLOW)
no_data("large-1500", spoil("large", 1500))
no_data("large-1500-start", spoil("large", 1500), from_start=True)
no_data("forget", spoil("forget", 20))
no_data("forget-1-flow", spoil("forget", 20), **ONE_FLOW)
no_data("forget-start", spoil("forget", 20), from_start=True)
survives("large-merged", "One of two NICs passes small packets only: the other carries all.", spoil("large", 700, 1),
         left=0.5, hold_s=3, finds_a_way=True, env={"STRATUS_MERGE_NICS": "all"}, nics=2, nic_gbps=NIC_GBPS / 2)
