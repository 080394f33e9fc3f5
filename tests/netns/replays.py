# SPDX-License-Identifier: Apache-2.0
"""replays: cases of the test script faults in which jobs with stages and with experts break. coll replays them: several
communicators at once, sends and receives, uneven alltoalls, each of them checked."""

import json

import victim
from trial import add_case
from troubles import again, away, reset_all, wait
from victim import Unexpected, until

HOSTS = 4  # two stages of two data-parallel ranks each; two experts a rank
# Host 0 sends 17 MB for a step, and for each check of it: the data of steps is not checked. So little that few CPUs check it in
# time, and so slowly that it takes some seconds: with 4 a job ended before a busy machine had seen that it began.
CHECKS = 8
REPLAY = ["--replay-skip", "0", "--replay-steps", "1", "--compute-scale", "0.05", "--bytes-scale", "0.001", "-c", CHECKS]
BEGIN_BYTES = 25e6
NIC_GBPS, FLOW_GBPS = 0.2, 0.05
END_LIMIT_S = 60


class Replay(victim.Job):
    """It ends by itself."""

    def command(self):
        return [f"{victim.ROOT}/build/tests/coll/coll", "--hosts", self.cluster.call("hosts", self.cluster.name).strip(),
                "--json", f"{self.scratch}/result"]

    def sent_bytes(self):
        """By host 0; 0 where its rank has not begun, or has ended."""
        try:
            for pid in self.pids(0):
                with open(f"/proc/{pid}/net/dev", encoding="utf-8") as file:
                    return next(int(line.split()[9]) for line in file if line.strip().startswith("eth0:"))
        except OSError:
            pass
        return 0

    def wrong(self):
        with open(f"{self.scratch}/result", encoding="utf-8") as file:
            return json.load(file)["workloads"][0]["wrong"]

    def until_it_ends(self):
        """What host 0 had sent."""
        sent = [0]

        def has_ended():
            sent.append(self.sent_bytes())
            return self.process.poll() is not None
        until("the job ends", END_LIMIT_S, has_ended)
        return max(sent)


def replay(test, workload, damage, repair=None, hold_s=0.0):
    """Breaks it while it checks: it goes on, and nothing is wrong."""
    with test.clusters(hosts=HOSTS, nic_gbps=NIC_GBPS, flow_gbps=FLOW_GBPS) as cluster, Replay(
            cluster, ["--replay", workload, *REPLAY], nccl=test.nccl) as job:
        until("the checks run", 40, lambda: job.run_for(0) or job.sent_bytes() > BEGIN_BYTES)
        before = job.sent_bytes()
        damage(cluster, job)
        job.run_for(hold_s)
        if repair:
            repair(cluster, job)
        test.found.update(sent_share=before / job.until_it_ends(), status=job.process.returncode,
                          flows_lost=len(job.said(r"flow \d+ to .* lost")))
        if job.process.returncode or job.wrong() != 0:
            raise Unexpected(f"exit status {job.process.returncode}: {job.last_words()}")
        if not 1 / (CHECKS + 1) < test.found["sent_share"] < 1:
            raise Unexpected(f"broken behind {test.found['sent_share']:.2f} of its bytes: not in the checks")


STAGES, EXPERTS = "gpt_7b_tp8_pp2_hosts", "mixtral_8x7b_ep"


def replayed(name, what, workload, *damage, **more):
    add_case(name, what, lambda test: replay(test, workload, *damage, **more))


replayed("replay-stages-reset", "Two stages and data parallelism: all flows of two of 4 hosts reset, three times.", STAGES,
         again(3, reset_all, wait(0.3)))
replayed("replay-stages-nic-2s", "The same: the only NIC of a host down for 2 s.", STAGES, **away(2))
replayed("replay-experts-reset", "Experts on 4 hosts: all flows of two hosts reset, three times.", EXPERTS,
         again(3, reset_all, wait(0.3)))
replayed("replay-experts-nic-2s", "The same: the only NIC of a host down for 2 s.", EXPERTS, **away(2))
