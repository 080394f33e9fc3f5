# SPDX-License-Identifier: Apache-2.0
"""Launches: all models that send the same in one, for each variant, round and setting."""
import dataclasses
import json
import time

from benchmark.run import Failure
from benchmark.tools import Bench

from training import result
from training.counters import Counters
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


def replayed_models(text, warm_ups, counters, nics_bytes_per_ns):
    """Of what coll wrote, with the use of NICs and CPUs during the steps that count."""
    told = json.loads(text)
    if (told["format"], told["version"]) != (REPLAY_FORMAT, REPLAY_VERSION):
        raise Failure(f"coll --json wrote {told['format']} of version {told['version']}")
    models = []
    for model in told["workloads"][warm_ups:]:
        elapsed_ns = model["ended_ns"] - model["began_ns"]
        sent, busy = counters.between(model["began_ns"], model["ended_ns"])
        models.append(result.replayed(model, sent / (nics_bytes_per_ns * elapsed_ns) if nics_bytes_per_ns else None, busy))
    return models


def run_launch(runner, cluster, job, setting, variant, number):
    """One variant, all models, one launch for each kind of data. What fails is told in the launch."""
    bench = Bench(runner, Settings(job.limit_s), cluster)
    launch = result.Launch(setting.caps, setting.hosts, setting.compute_scale, variant.key, number)
    hosts = ",".join(f"ns:{cluster}-h{host}" for host in range(setting.hosts))
    scale, warm_ups = job.set.scale, job.set.warm_up_replays
    nics_bytes_per_ns = 0 if setting.caps == NO_NETWORK else setting.hosts * scale.nic_gbps(setting.hosts) / 8
    start = time.monotonic()

    def once():
        with Counters(runner, cluster, setting.hosts) as counters:
            texts = [bench.coll_json(variant.transport, arguments, dict(variant.variables), hosts)
                     for arguments in job.all_arguments(setting, number)]
        models = [replayed_models(text, warm_ups, counters, nics_bytes_per_ns) for text in texts]
        return sum(models, []), counters.cpu_busy()
    try:
        launch.models, launch.cpu_busy = bench.retrying(once)
    except Failure as failure:
        launch.error = str(failure)
    launch.retries, launch.took_s = bench.retries, time.monotonic() - start
    return launch


def run_setting(runner, job, setting, say):
    cluster = runner.cluster_up([*setting.cluster(job.set.scale), "--loss", str(job.loss_permille)])
    try:
        for number, variant in launches_of(setting, job.protocol, job.set.variants):
            say(f"{setting.text}: round {number + 1}: {variant.label}")
            launch = run_launch(runner, cluster, job, setting, variant, number)
            if launch.error:
                say(f"{setting.text}: {variant.label}: {launch.error}")
            yield launch
    finally:
        runner.cluster_down(cluster)
