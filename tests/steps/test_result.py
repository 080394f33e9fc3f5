# SPDX-License-Identifier: Apache-2.0
"""The JSON file, what is printed of it, and the picture."""
import json
import re
import tempfile
import xml.etree.ElementTree

from benchmark.run import Failure
import invent
from training import report, result, summary
from training.plan import CAPPED, MODELS


def test_it_is_read_as_it_was_written():
    text = result.as_json(invent.result(scales=(0.5, 1)))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        assert result.as_json(result.read(file.name)) == text
    assert json.loads(text)["points"] and json.loads(text)["targets"]


def test_another_file_is_refused():
    value = json.loads(result.as_json(invent.result(models=("a", "b"), hosts=(2,), rounds=1)))
    for text in ("", "[]", "{}", json.dumps({**value, "version": 1})):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text)
            file.flush()
            try:
                result.read(file.name)
                assert False, f"{text[:60]!r} was taken"
            except Failure as failure:
                assert str(failure).startswith(f"{file.name}: not what scripts/steps --json writes"), failure


def test_the_picture_has_a_dot_for_each_model_and_number_of_hosts():
    found = invent.result()
    text = report.as_svg(found)
    xml.etree.ElementTree.fromstring(text)
    assert f"scripts/steps, {found['machine']['date']}" in text and len(text) < 60000, len(text)
    places = {}
    for name, body in re.findall(r'<g id="dot-([\w-]+)">(.*?)</g>', text, flags=re.DOTALL):
        x, y = re.search(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', body).groups()
        places[name] = float(x), float(y)
    points = [point for point in summary.points(found["launches"])
              if point["caps"] in (CAPPED, "none") and point["compute_scale"] == 1]
    assert len(points) == len(places) == 4 * len(MODELS), (len(points), len(places))
    # Right of it is what scales better, above it what gains more.
    ordered = sorted(points, key=lambda point: point["ddp_acc"])
    for one, other in zip(ordered, ordered[1:]):
        (x, y), (next_x, next_y) = (places[f"{each['model']}-{each['hosts']}"] for each in (one, other))
        ratio, next_ratio = (each["acc_ratio"]["socket"]["median"] for each in (one, other))
        assert x <= next_x + 0.02 and ((y - next_y) * (next_ratio - ratio) >= 0 or abs(y - next_y) < 0.02), (one, other)


def test_names_cannot_break_the_picture():
    text = report.as_svg(invent.result(models=('<b onload="x">&', "my-model 2"), hosts=(2,), rounds=1))
    xml.etree.ElementTree.fromstring(text)
