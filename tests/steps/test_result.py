# SPDX-License-Identifier: Apache-2.0
"""Sums on invented launches, what is run in which order, what is printed of it, and the picture."""
import re
import tempfile
import xml.etree.ElementTree

from benchmark.run import Failure
import invent
from training import result
from training.plan import AGAIN, CAPPED, MODELS, NO_NETWORK, SCALE, SOCKET, SOCKET_2X8, STRATUS, UNCAPPED, Setting, launches_of


def near(value, wanted):
    return abs(value - wanted) < 1e-9


def point_of(steps_of_rounds):
    """One model on two hosts with caps: {variant: time of a step} of each round."""
    launches = [invent.launch(NO_NETWORK, 1, SOCKET, 0, ["m"], step_us=1000.0)]
    launches += [invent.launch(CAPPED, 2, key, number, ["m"], step_us=step_us)
                 for number, steps in enumerate(steps_of_rounds) for key, step_us in steps.items()]
    alone, point = result.points(launches)
    assert alone.ddp_acc == 1 and alone.acc_ratio == {}, alone
    return point


def test_ratios_are_formed_within_a_round():
    point = point_of([{SOCKET: 2000.0, AGAIN: 2000.0, STRATUS: 1000.0}, {SOCKET: 6000.0, AGAIN: 6000.0, STRATUS: 2000.0},
                      {SOCKET: 8000.0, AGAIN: 8000.0, STRATUS: 2000.0}])
    assert list(point.acc_ratio) == [SOCKET] and near(point.acc_ratio[SOCKET], 3) and near(point.ddp_acc, 1000 / 6000), point


def test_socket_of_a_round_is_the_mean_of_its_two_launches():
    point = point_of([{SOCKET: 1000.0, AGAIN: 2000.0, STRATUS: 1000.0}])
    assert near(point.acc_ratio[SOCKET], 1 / 0.75) and near(point.noise, 0.5) and near(point.ddp_acc, 0.75), point


def test_a_variant_that_failed_counts_for_nothing():
    point = point_of([{SOCKET: 1000.0, AGAIN: 1000.0}, {STRATUS: 500.0}, {AGAIN: 1000.0, STRATUS: 500.0}])
    assert near(point.acc_ratio[SOCKET], 2) and near(point.noise, 0), point
    point = point_of([{SOCKET: 1000.0}])
    assert point.acc_ratio == {} and point.noise is None, point


def test_extremes_are_told():
    """Of the model with most to send, on 8 hosts: a step of 1 + 7 and of 1 + 1.4."""
    found = invent.result()
    text = result.as_text(found)
    assert "WARNING" not in text and f"flows capped at 1/8 of the NIC: {(1 + 1 / 11) / (1 + 0.2 / 11):.2f} (alexnet, 2 hosts) to " \
        f"{8 / 2.4:.2f} (tts_angular, 8), median " in text and "flows without caps: 1.00" in text and "against Socket 2x8" in text, text
    slow = next(launch for launch in found["launches"] if launch["variant"] == AGAIN and launch["caps"] == CAPPED)
    for model in slow["models"]:
        model["step_us"], model["wrong"] = [1e6], 3
    slow["error"] = "it broke"
    text = result.as_text(found)
    assert "33 elements of results were wrong" in text and "Socket on 2 hosts, flows capped at 1/8 of the NIC, round 1: it broke" in text, text
    assert re.search(r"capped.*Socket against itself: 0\.[0-8]", text), text


def test_each_round_begins_with_another_transport():
    def keys(setting, rounds):
        return [(number, variant.key) for number, variant in launches_of(setting, rounds)]
    assert keys(Setting(CAPPED, 2), 2) == [
        (0, SOCKET), (0, SOCKET_2X8), (0, AGAIN), (0, STRATUS), (1, SOCKET_2X8), (1, AGAIN), (1, STRATUS), (1, SOCKET)]
    assert keys(Setting(NO_NETWORK, 1), 7) == [(0, SOCKET), (0, SOCKET_2X8), (0, STRATUS)]


def test_rates_are_scaled_with_bytes():
    job_s = 8 / SCALE.job_nic_gbps
    for hosts in (2, 4, 8):
        assert near(8 * SCALE.bytes(hosts) / SCALE.nic_gbps(hosts), job_s), SCALE
    assert Setting(CAPPED, 8).cluster(SCALE)[:6] == [
        "--hosts", "8", "--nic-gbps", f"{SCALE.nic_gbps(8):g}", "--flow-gbps", f"{SCALE.nic_gbps(8) / 8:g}"]
    assert Setting(NO_NETWORK, 1).cluster(SCALE)[:2] == ["--hosts", "2"]
    assert "--flow-gbps" not in Setting(UNCAPPED, 8).cluster(SCALE)


def test_a_part_of_a_model_is_a_part_of_its_times_and_bytes():
    assert SCALE.replay_arguments(2, 2, 0.25) == ["--compute-scale", "0.5", "--bytes-scale", f"{SCALE.bytes(2) / 4:.9g}"]


def picture_of(found):
    with tempfile.NamedTemporaryFile(suffix=".svg") as file:
        result.draw(found, file.name)
        return file.read().decode()


def test_the_picture_has_a_dot_for_each_model_and_number_of_hosts():
    found = invent.result()
    text = picture_of(found)
    xml.etree.ElementTree.fromstring(text)
    assert f"scripts/steps, {found['machine']['date']}" in text and len(text) < 60000, len(text)
    for hosts in (1, 2, 4, 8):
        body = re.search(rf'<g id="dots-{hosts}">(.*?)</g>\s*</g>', text, flags=re.DOTALL)[1]
        places = [(float(x), float(y)) for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', body)]
        points = [point for point in result.points(found["launches"]) if point.hosts == hosts and point.caps in (CAPPED, NO_NETWORK)]
        assert len(points) == len(places) == len(MODELS), (len(points), len(places))
        # Right of it is what scales better, above it what gains more.
        for (point, (x, y)), (other, (next_x, next_y)) in zip(zip(points, places), list(zip(points, places))[1:]):
            assert (next_x - x) * (other.ddp_acc - point.ddp_acc) >= 0, (point, other)
            assert (y - next_y) * (other.acc_ratio[SOCKET] - point.acc_ratio[SOCKET]) >= 0, (point, other)


def test_there_is_no_picture_of_nothing():
    try:
        picture_of(invent.result(hosts=()))
        assert False, "drawn"
    except Failure as failure:
        assert str(failure).startswith("nothing to draw"), failure
