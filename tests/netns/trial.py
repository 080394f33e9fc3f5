# SPDX-License-Identifier: Apache-2.0
"""trial: one case of the test script faults: a job on two hosts, what is done to it, whether it went on as it
should, or ended as it should, and the figures of that."""

import re
import time

import victim
from victim import Unexpected, until

NIC_GBPS, FLOW_GBPS, FLOWS = 4, 0.5, 8
# One connection each way, so that 8 flows are all there are from one host to the other.
ONE_CHANNEL = {"NCCL_MIN_NCHANNELS": "1", "NCCL_MAX_NCHANNELS": "1", "STRATUS_FLOWS": str(FLOWS)}
BACK = 0.5  # of the bandwidth before, as far as the network has it: less is "did not come back"
BACK_LIMIT_S = 20


CASES = {}


def case(name, is_quick=False):
    def add(function):
        CASES[name] = (function, is_quick)
        return function
    return add


def add_case(name, what, run, is_quick=False):
    """`what` is for --list."""
    run.__doc__ = what
    CASES[name] = (run, is_quick)


def survives(name, what, *damage, is_quick=False, **more):
    """A case that is Trial.survives and nothing else."""
    add_case(name, what, lambda test: test.survives(*damage, **more), is_quick)


def fails(name, what, *damage, is_quick=False, **more):
    """The same of Trial.fails."""
    add_case(name, what, lambda test: test.fails(*damage, **more), is_quick)


class Trial:
    """One case: its cluster, its job, and what was found out."""

    def __init__(self, nccl, is_quick):
        self.nccl, self.found = nccl, {}
        self.before_s, self.after_s = (1.0, 1.5) if is_quick else (3.0, 5.0)

    def clusters(self, **options):
        shape = {"hosts": 2, "nic_gbps": NIC_GBPS, "flow_gbps": FLOW_GBPS, "flow_buckets": 1024}
        return victim.Cluster(**{**shape, **options})

    def job(self, cluster, env=(), sizes="4M", more=()):
        return victim.Job(cluster, ["--split-cpus", "--sizes", sizes, *more],
                          {**ONE_CHANNEL, **dict(env)}, nccl=self.nccl)

    # ---- faults that a job survives ----

    def survives(self, damage, repair=None, hold_s=0.0, left=1.0, env=(), finds_a_way=False, says=(), more=(),
                 flows=FLOWS, **shape):
        """Starts a job, does the damage, waits, repairs it; the job must go on as if nothing had been, with
        the bandwidth that is left of what there was (None: with any). finds_a_way: and before the repair, since there are
        other paths. says: what one line of the log must match."""
        with self.clusters(**shape) as cluster, self.job(cluster, env, more=more) as job:
            job.until_running()
            until("all flows are up", 10, lambda: len(cluster.flows(0)) >= flows)
            job.run_for(self.before_s)
            begin = time.monotonic()
            damage(cluster, job)
            self.found["damage_s"] = round(time.monotonic() - begin, 3)
            job.run_for(hold_s)
            if finds_a_way and job.completions()[-1].at < time.monotonic() - hold_s / 4:
                raise Unexpected(f"nothing moved in the last {hold_s / 4:g} s before the repair")
            if says and not any(all(re.search(each, line) for each in says) for line in job.said("WARN")):
                raise Unexpected(f"no warning says all of {says}: {job.said('WARN')}")
            if repair:
                repair(cluster, job)
            end = time.monotonic()
            until("operations complete again", 40,
                  lambda: job.run_for(0) or len([c for c in job.completions() if c.at > end]) > 10)
            self.found["left"] = left
            self.measure_before(job.completions(), begin)
            is_back = self.wait_for_bandwidth(job, end)
            status = job.end()
            self.measure(job.completions(), begin, end)
            operations, wrong = job.sum_up()
            self.found.update(operations=operations, wrong=wrong, status=status,
                              flows_lost=len(job.said(r"flow \d+ to .* lost")))
            if wrong or status:
                raise Unexpected(f"{wrong} wrong elements, exit status {status}: {job.last_words()}")
        if not is_back:
            raise Unexpected(f"bandwidth {self.found['before_gbs']:.3f} GB/s before, "
                             f"{self.found['after_gbs'] or 0:.3f} after")

    def measure_before(self, completions, begin):
        self.found["before_gbs"] = victim.bandwidth(completions, begin - self.before_s, begin)
        if not self.found["before_gbs"]:
            raise Unexpected(f"no operation in {self.before_s:g} s before anything was broken")

    def wait_for_bandwidth(self, job, end):
        """Whether it comes back; a machine that is busy with something else for seconds has more time."""
        job.run_for(self.after_s)
        while True:
            now = time.monotonic()
            after = victim.bandwidth(job.completions(), max(end, now - self.after_s / 2), now)
            self.found["after_gbs"] = after
            if after and after >= BACK * (self.found["left"] or 0) * self.found["before_gbs"]:
                return True
            if now > end + BACK_LIMIT_S:
                return False
            job.run_for(self.after_s / 4)

    def measure(self, completions, begin, end):
        self.found.update(
            during_gbs=victim.goodput(completions, begin, max(end, begin + 1.0)),
            stall_s=victim.stall(completions, begin, end + 1.0),
            recovery_s=victim.recovery(completions, end, 0.85 * self.found["before_gbs"]))

    # ---- faults that a job cannot survive ----

    def fails(self, damage, deadline_s, says, survivors, env=(), repair=None, slack_s=3.0, sender=0, more=(),
              flows=FLOWS, warns=(), from_start=False, **shape):
        """The job must end within the deadline and a few seconds. Each survivor (a host) has to say why,
        in lines of NCCL's log that match all of `says`. warns: what one line before that must match.
        from_start: the damage is there when the job begins."""
        with self.clusters(**shape) as cluster:
            if from_start:
                damage(cluster, None)
            for is_last in (False, False, True):
                with self.job(cluster, env, more=["--grace", "20s", *more]) as job:
                    if not from_start:
                        job.until_running()
                        until("all flows are up", 10, lambda: len(cluster.flows(sender)) >= flows)
                        job.run_for(self.before_s)
                    until("all ranks run", 10, lambda: all(job.pids(host) for host in range(cluster.hosts)))
                    try:
                        self.watch_it_fail(cluster, job, None if from_start else damage, deadline_s + slack_s, says,
                                           survivors, repair, warns)
                        return
                    except Unexpected:
                        # Between two operations the ranks wait for one another: they see it before NCCL does.
                        if is_last or not job.has_ended_between_operations():
                            raise
                self.found.clear()

    def watch_it_fail(self, cluster, job, damage, limit_s, says, survivors, repair, warns):
        pids = [job.pid(host) for host in range(cluster.hosts)]
        begin = time.monotonic()
        if damage:
            damage(cluster, job)
        self.found["damage_s"] = round(time.monotonic() - begin, 3)
        try:
            said = {host: self.wait_for_errors(job, pids[host], begin, limit_s)
                    for host in survivors}
        finally:
            if repair:
                repair(cluster, job)
        status = job.wait(limit_s + 25)
        self.found.update(ended_s=time.monotonic() - begin, status=status, printed=job.printed()[-600:])
        if status != 1:
            raise Unexpected(f"exit status {status}, not 1: {job.last_words()}")
        if warns and not any(all(re.search(each, line) for each in warns) for line in job.said("WARN")):
            raise Unexpected(f"no warning says all of {warns}: {job.said('WARN')}")
        for host, lines in said.items():
            self.check_errors(host, lines, says)
        if "remote process exited" not in job.printed():
            raise Unexpected(f"no ncclRemoteError: {job.last_words()}")

    def wait_for_errors(self, job, pid, begin, seconds):
        """The errors that a rank logs, once it has ended by itself."""
        try:
            until(f"rank with pid {pid} reports an error and ends",
                  max(0.1, begin + seconds - time.monotonic()), lambda: not victim.is_rank(pid))
        except Unexpected as error:
            said = [re.sub(r"^.*? NCCL ", "", line) for line in job.said("NET/stratus", pid)]
            raise Unexpected(f"{error}: {' | '.join(said[-8:])}; its threads: {', '.join(victim.threads(pid))}; "
                             f"{job.last_words()}") from None
        self.found.setdefault("error_s", []).append(round(time.monotonic() - begin, 3))
        return [re.sub(r"^.*? WARN ", "", line) for line in job.said("WARN NET/stratus: lost ", pid)]

    def check_errors(self, host, lines, says):
        self.found.setdefault("errors", []).extend(lines)
        # A rank finds it out by one connection, and may hear of it by another at the same moment.
        heard = [line for line in lines if re.search("(it|which) gave up", line)]
        found = [line for line in lines if line not in heard]
        if not lines or len(found) > 1 or len(heard) > 1:
            raise Unexpected(f"host {host} reports {len(lines)} errors, not 1: {' | '.join(lines)}")
        told = (found or heard)[0]
        for pattern in says:
            if not re.search(pattern, told):
                raise Unexpected(f"host {host} does not say '{pattern}': {told}")
