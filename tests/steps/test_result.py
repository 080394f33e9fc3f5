# SPDX-License-Identifier: Apache-2.0
"""The JSON file: what was written is read again, and what is wrong in it is said with its place."""
import copy
import json

import invent
from problem import Problem
from training import result


def test_it_is_read_as_it_was_written():
    whole = invent.result(scales=(0.5, 1))
    text = result.as_json(whole)
    assert json.loads(result.as_json(result.parse(text, "r.json"))) == json.loads(text)
    assert json.loads(text)["points"] and json.loads(text)["targets"]


def said(change):
    """What the reader says of a file in which something was changed."""
    value = json.loads(result.as_json(invent.result(models=("a", "b"), hosts=(2,), rounds=1)))
    value = copy.deepcopy(value)
    change(value)
    try:
        result.parse(json.dumps(value, indent=1), "r.json")
    except Problem as problem:
        return str(problem)
    return "nothing"


def test_what_is_wrong_is_said_with_its_place():
    def model(value):
        return value["launches"][4]["models"][1]
    wrongs = (
        (lambda value: value.update(format="other"), "format: must be one of stratus-steps"),
        (lambda value: value.update(version=1), "version: must be a whole number from 2 to 2"),
        (lambda value: value.update(more=1), "more: unknown; expected format"),
        (lambda value: value.pop("scale"), "lacks scale"),
        (lambda value: value["scale"].update(time="2"), "scale.time: must be a number"),
        (lambda value: value["launches"][4].update(hosts=9), "launches[4].hosts: must be a whole number from 1 to 8"),
        (lambda value: value["launches"][4].update(variant="mpi"), "launches[4].variant: must be one of socket"),
        (lambda value: value["launches"][4].update(cpu_busy=1.5), "launches[4].cpu_busy: must be a number from 0 to 1"),
        (lambda value: model(value).update(step_us=[]), "launches[4].models[1].step_us: must be times of steps"),
        (lambda value: model(value).update(step_us=[1, "2"]), "launches[4].models[1].step_us[1]: must be a number"),
        (lambda value: model(value).update(wrong=True), "launches[4].models[1].wrong: must be a whole number"),
        (lambda value: model(value).update(name="a"), "launches[4].models: has a model twice"),
        (lambda value: model(value).update(batch=31), "points: does not follow from the launches"),
        (lambda value: value["targets"][0].update(is_met=None), "targets: does not follow from the launches"))
    for change, wanted in wrongs:
        found = said(change)
        assert found.startswith("r.json:") and wanted in found, (wanted, found)
    assert said(lambda value: None) == "nothing"


def test_what_is_no_json_is_said_with_its_line():
    for text, wanted in (("", "r.json:1:1: no good JSON: the file ends early"), ("{\n]", "r.json:2:1: no good JSON"),
                         ("[]", "must be an object")):
        try:
            result.parse(text, "r.json")
            assert False, f"{text!r} was taken"
        except Problem as problem:
            assert wanted in str(problem), problem
