# SPDX-License-Identifier: Apache-2.0
"""Results of scripts/steps that never were: every figure follows from a few, so that sums can be known."""
import dataclasses

from training.plan import AGAIN, CAPPED, MODELS, NO_NETWORK, PROTOCOLS, SCALE, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED

BATCH, ALONE_US = 32, 1000.0
ORDER = (SOCKET, SOCKET_2X8, AGAIN, STRATUS)
# How many times longer than on one host a step is, by caps and transport; per host beyond the first.
SLOWER = {CAPPED: {SOCKET: 1.0, AGAIN: 1.0, SOCKET_2X8: 0.25, STRATUS: 0.2},
          UNCAPPED: {SOCKET: 0.2, AGAIN: 0.2, SOCKET_2X8: 0.2, STRATUS: 0.2},
          NO_NETWORK: dict.fromkeys(ORDER, 0.0)}


def replayed(name, step_us, compute_us=ALONE_US):
    return {"name": name, "batch": BATCH, "step_us": [step_us] * 4, "compute_us": compute_us, "wrong": 0}


def launch(caps, hosts, key, number, models, compute_scale=1, step_us=None):
    """Later models of the list have more to communicate."""
    done = []
    for place, name in enumerate(models):
        weight = (place + 1) / len(models)
        slower = SLOWER[caps][key] * weight * (hosts - 1)
        done.append(replayed(name, step_us or ALONE_US * compute_scale + ALONE_US * slower, ALONE_US * compute_scale))
    return {"caps": caps, "hosts": hosts, "compute_scale": compute_scale, "variant": key, "round": number, "error": None, "retries": 0,
            "took_s": 1.5, "cpu_busy": 0.5, "models": done}


def result(models=MODELS, hosts=(2, 4, 8), rounds=2, scales=(1,)):
    launches = [launch(NO_NETWORK, 1, key, 0, models, scale) for scale in scales for key in ORDER]
    launches += [launch(caps, count, key, number, models) for caps in (CAPPED, UNCAPPED) for count in hosts
                 for number in range(rounds) for key in ORDER]
    launches += [launch(CAPPED, 4, key, 0, models, scale) for scale in scales if scale != 1 for key in ORDER]
    return {"machine": {"date": "2026-11-24", "NCCL": "invented"}, "scale": dataclasses.asdict(SCALE),
            "protocol": dataclasses.asdict(PROTOCOLS["default"]), "ranks_per_host": 1, "launches": launches}
