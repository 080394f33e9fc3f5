# SPDX-License-Identifier: Apache-2.0
"""Results of scripts/steps that never were: every figure follows from a few, so that sums can be known."""
from training.plan import AGAIN, CAPPED, MODELS, NO_NETWORK, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED

BATCH, ALONE_US = 32, 1000.0
ORDER = (SOCKET, SOCKET_2X8, AGAIN, STRATUS)
# How many times longer than on one host a step is, by caps and transport; per host beyond the first.
SLOWER = {CAPPED: {SOCKET: 1.0, AGAIN: 1.0, SOCKET_2X8: 0.25, STRATUS: 0.2},
          UNCAPPED: {SOCKET: 0.2, AGAIN: 0.2, SOCKET_2X8: 0.2, STRATUS: 0.2},
          NO_NETWORK: dict.fromkeys(ORDER, 0.0)}


def launch(caps, hosts, key, number, models, step_us=None):
    """Later models of the list have more to communicate."""
    done = []
    for place, name in enumerate(models):
        slower = SLOWER[caps][key] * (place + 1) / len(models) * (hosts - 1)
        done.append({"name": name, "batch": BATCH, "step_us": [step_us or ALONE_US * (1 + slower)] * 4, "compute_us": ALONE_US, "wrong": 0})
    return {"caps": caps, "hosts": hosts, "variant": key, "round": number, "error": None, "retries": 0, "models": done}


def result(models=MODELS, hosts=(2, 4, 8), rounds=2):
    launches = [launch(NO_NETWORK, 1, key, 0, models) for key in ORDER]
    launches += [launch(caps, count, key, number, models) for caps in (CAPPED, UNCAPPED) for count in hosts
                 for number in range(rounds) for key in ORDER]
    return {"machine": {"date": "2026-11-24", "NCCL": "invented"}, "launches": launches}
