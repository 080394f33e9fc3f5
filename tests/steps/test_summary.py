# SPDX-License-Identifier: Apache-2.0
"""Sums on invented launches, and what is run in which order."""
import invent
from training import report, summary
from training.plan import (
    AGAIN, CAPPED, NO_NETWORK, OFF, PROTOCOLS, SCALE, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED, Setting, launches_of, settings)


def near(value, wanted):
    return abs(value - wanted) < 1e-9


def points_of(steps_of_rounds, alone_us=1000.0):
    """One model on two hosts with caps: {variant: time of a step} of each round."""
    launches = [invent.launch(NO_NETWORK, 1, SOCKET, 0, ["m"], step_us=alone_us)]
    launches += [invent.launch(CAPPED, 2, key, number, ["m"], step_us=step_us)
                 for number, steps in enumerate(steps_of_rounds) for key, step_us in steps.items()]
    return summary.points(launches)


def test_ratios_are_formed_within_a_round():
    rounds = [{SOCKET: 2000.0, AGAIN: 2000.0, STRATUS: 1000.0}, {SOCKET: 6000.0, AGAIN: 6000.0, STRATUS: 2000.0},
              {SOCKET: 8000.0, AGAIN: 8000.0, STRATUS: 2000.0}]
    alone, point = points_of(rounds)
    assert alone["ddp_acc"] == 1 and alone["acc_ratio"][SOCKET] is None, alone
    assert [near(point["acc_ratio"][SOCKET][key], wanted) for key, wanted in (("median", 3), ("min", 2), ("max", 4))], point
    assert point["acc_ratio"][SOCKET_2X8] is None, point
    assert near(point["ddp_acc"], 1000 / 6000), point


def test_socket_of_a_round_is_the_mean_of_its_two_launches():
    _, point = points_of([{SOCKET: 1000.0, AGAIN: 2000.0, STRATUS: 1000.0}])
    assert near(point["acc_ratio"][SOCKET]["median"], 1 / 0.75), point
    assert near(point["noise"], 0.5), point
    assert near(point["ddp_acc"], 0.75), point


def test_a_variant_that_failed_counts_for_nothing():
    _, point = points_of([{SOCKET: 1000.0, AGAIN: 1000.0}, {STRATUS: 500.0}, {AGAIN: 1000.0, STRATUS: 500.0}])
    assert near(point["acc_ratio"][SOCKET]["median"], 2) and near(point["noise"], 0), point
    _, point = points_of([{SOCKET: 1000.0}])
    assert point["acc_ratio"] == {SOCKET: None, SOCKET_2X8: None, OFF: None} and point["noise"] is None, point


def targets_by_name(points):
    return {(each["caps"], each["name"]): each for each in summary.targets(points)}


def test_targets():
    found = targets_by_name(summary.points(invent.result()["launches"]))
    # Of the model with most to send, on 8 hosts: a step of 1 + 7 and of 1 + 1.4.
    best = found[CAPPED, "best acc_ratio against Socket"]
    assert near(best["is"], 8 / 2.4) and best["is_met"] is True and best["where"] == "tts_angular on 8 hosts", best
    worst = found[CAPPED, "worst acc_ratio against Socket"]
    assert worst["where"] == "alexnet on 2 hosts" and worst["is_met"] is True and worst["noise"] == 0, worst
    assert found[CAPPED, "median acc_ratio against Socket"]["is_met"] is True, found
    assert found[CAPPED, "worst acc_ratio against Socket 2x8"]["is"] > 1, found
    assert near(found[UNCAPPED, "worst acc_ratio against Socket"]["is"], 1), found
    assert len(found) == 6, found


def test_worst_is_judged_by_the_noise_of_the_worst():
    def judged(stratus_us, again_us):
        points = points_of([{SOCKET: 1000.0, AGAIN: again_us, STRATUS: stratus_us}])
        return targets_by_name(points)[CAPPED, "worst acc_ratio against Socket"]["is_met"]
    assert judged(1100.0, 1000.0) is False
    assert judged(1040.0, 1050.0) is True
    # A machine that differs so much from itself tells nothing of what is less, but beyond it.
    assert judged(1150.0, 1200.0) is None and judged(900.0, 1200.0) is True and judged(2000.0, 1200.0) is False


def test_what_is_slower_is_said():
    assert "WARNING" not in report.as_text(invent.result(models=("a", "b")))
    result = invent.result(models=("a",), hosts=(2,), rounds=1)
    slow = [launch for launch in result["launches"] if launch["variant"] == STRATUS and launch["caps"] == CAPPED]
    slow[0]["models"][0]["step_us"] = [3000.0] * 4
    slow[0]["cpu_busy"] = 0.97
    slow[0]["models"][0]["wrong"] = 3
    told = report.as_text(result)
    assert "slower than Socket: a on 2 hosts, flows capped at 1/8 of the NIC: acc_ratio 0.67" in told, told
    assert "stratus 97 %" in told and "3 elements of results were wrong" in told, told


def test_what_is_run():
    found = settings([2, 4, 8], [CAPPED, UNCAPPED], [0.5, 1, 2])
    assert [(each.caps, each.hosts, each.compute_scale) for each in found] == [
        (NO_NETWORK, 1, 0.5), (NO_NETWORK, 1, 1), (NO_NETWORK, 1, 2), (CAPPED, 2, 1), (CAPPED, 4, 1), (CAPPED, 8, 1),
        (UNCAPPED, 2, 1), (UNCAPPED, 4, 1), (UNCAPPED, 8, 1), (CAPPED, 4, 0.5), (CAPPED, 4, 2)], found
    assert [each.hosts for each in settings([2], [UNCAPPED], [1, 2])] == [1, 1, 2, 2]


def keys(setting, protocol):
    return [(number, variant.key) for number, variant in launches_of(setting, PROTOCOLS[protocol])]


def test_each_round_begins_with_another_transport():
    assert keys(Setting(CAPPED, 2, 1), "default") == [
        (0, SOCKET), (0, SOCKET_2X8), (0, AGAIN), (0, STRATUS), (1, SOCKET_2X8), (1, AGAIN), (1, STRATUS), (1, SOCKET)]
    assert len(keys(Setting(CAPPED, 2, 1), "full")) == 28
    assert keys(Setting(NO_NETWORK, 1, 1), "full") == [(0, SOCKET), (0, SOCKET_2X8), (0, STRATUS)]
    assert keys(Setting(NO_NETWORK, 1, 2), "full") == [(0, SOCKET)]


def test_rates_are_scaled_with_bytes_and_times():
    job_s = 1e9 * 8 / (SCALE.job_nic_gbps * 1e9)
    for hosts in (2, 4, 8):
        emulated_s = 1e9 * SCALE.bytes(hosts) * 8 / (SCALE.nic_gbps(hosts) * 1e9)
        assert near(emulated_s, job_s * SCALE.time), SCALE
    assert Setting(CAPPED, 8, 1).cluster(SCALE)[:6] == [
        "--hosts", "8", "--nic-gbps", f"{SCALE.nic_gbps(8):g}", "--flow-gbps", f"{SCALE.nic_gbps(8) / 8:g}"]
    assert Setting(NO_NETWORK, 1, 1).cluster(SCALE)[:2] == ["--hosts", "2"]
    assert "--flow-gbps" not in Setting(UNCAPPED, 8, 1).cluster(SCALE)
