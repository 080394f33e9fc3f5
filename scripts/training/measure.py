# SPDX-License-Identifier: Apache-2.0
"""Launches: all models that send the same in one, for each variant, round and setting."""
import dataclasses
import json
import time

from benchmark import machine
from benchmark.run import Failure
from benchmark.tools import Bench

from training.plan import NO_NETWORK, launches_of

REPLAY_FORMAT, REPLAY_VERSION = "stratus-replay", 1


@dataclasses.dataclass
class Settings:
    """What a Bench wants."""
    limit_s: float


@dataclasses.dataclass
class Job:
    """What is the same for all launches."""
    set: object   # of sets.py
    scratch: str  # a directory for its files
    protocol: object
    ranks_per_host: int
    loss_permille: int = 0

    @property
    def limit_s(self):
        """Of a launch: far more than it takes, as Socket with caps needs seconds for a step of all models."""
        return 120 + 30 * (self.protocol.skip + self.protocol.steps) * self.set.scale.time

    def all_arguments(self, setting, number):
        """Of each run of coll in a launch of this round. Results are checked in the first round, where there is a network: a
        check takes the CPUs longer than steps do."""
        checks = "1" if number == 0 and setting.caps != NO_NETWORK else "0"
        return [["--replay", ",".join([models[0]] * self.set.warm_up_replays + models), *data, "-c", checks,
                 "--replay-steps", str(self.protocol.steps), "--replay-skip", str(self.protocol.skip),
                 *self.set.scale.replay_arguments(setting.hosts, setting.compute_scale), "--ppn", str(self.ranks_per_host)]
                for models, data in self.set.replays(setting.hosts * self.ranks_per_host, self.scratch)]


def replayed_models(text, warm_ups):
    told = json.loads(text)
    if (told["format"], told["version"]) != (REPLAY_FORMAT, REPLAY_VERSION):
        raise Failure(f"coll --json wrote {told['format']} of version {told['version']}")
    return told["workloads"][warm_ups:]


def run_launch(runner, cluster, job, setting, variant, number):
    """One variant, all models, one launch for each kind of data. What fails is told in the launch."""
    bench = Bench(runner, Settings(job.limit_s), cluster)
    launch = {"caps": setting.caps, "hosts": setting.hosts, "compute_scale": setting.compute_scale, "variant": variant.key,
              "round": number, "error": None, "cpu_busy": None, "models": []}
    hosts = ",".join(f"ns:{cluster}-h{host}" for host in range(setting.hosts))
    start, cpu_before = time.monotonic(), machine.cpu_times()

    def once():
        texts = [bench.coll_json(variant.transport, arguments, dict(variant.variables), hosts)
                 for arguments in job.all_arguments(setting, number)]
        return sum((replayed_models(text, job.set.warm_up_replays) for text in texts), [])
    try:
        launch["models"] = bench.retrying(once)
        launch["cpu_busy"] = machine.busy_since(cpu_before)
    except Failure as failure:
        launch["error"] = str(failure)
    return {**launch, "retries": bench.retries, "took_s": time.monotonic() - start}


def run_setting(runner, job, setting, say):
    cluster = runner.cluster_up([*setting.cluster(job.set.scale), "--loss", str(job.loss_permille)])
    try:
        for number, variant in launches_of(setting, job.protocol, job.set.variants):
            say(f"{setting.text}: round {number + 1}: {variant.label}")
            launch = run_launch(runner, cluster, job, setting, variant, number)
            if launch["error"]:
                say(f"{setting.text}: {variant.label}: {launch['error']}")
            yield launch
    finally:
        runner.cluster_down(cluster)
