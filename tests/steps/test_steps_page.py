# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: one dot per model and number of hosts, where it belongs and in its colour."""
import os
import tempfile

from browser import Browser
import invent
from look import check
from matplotlib import image
from training import summary, webpage
from training.plan import CAPPED, MODELS
import theme

FIGURES = ("capped-socket", "capped-socket-2x8", "uncapped-socket", "uncapped-socket-2x8")
# Of the figure's picture: id, title, colour, and the middle of each dot.
DOTS = """[...document.querySelectorAll('#%s svg g[id*="-dot-"]')].map(g => {
    const use = g.querySelector('use'), box = use.getBoundingClientRect();
    return [g.id.split('-dot-')[1], g.querySelector('title').textContent, getComputedStyle(use).fill,
            box.x + box.width / 2 + scrollX, box.y + box.height / 2 + scrollY];
  })"""
LINE = """(() => { const line = [...document.querySelectorAll('#%s g[id$="line-at-1"] path')]
  .map(p => p.getBoundingClientRect()).find(b => b.width > 0);
  return [line.left + scrollX, line.right + scrollX, line.y + line.height / 2 + scrollY]; })()"""


def rgb(hosts):
    value = theme.COLOURS[f"hosts{hosts}"]
    return tuple(int(value[place:place + 2], 16) for place in (1, 3, 5))


def check_dots(page, figure, points):
    dots = page.evaluate(DOTS % figure)
    wanted = {f"{point['model']}-{point['hosts']}": point for point in points}
    assert sorted(dot[0] for dot in dots) == sorted(wanted), (figure, len(dots), len(wanted))
    for name, title, fill, _, _ in dots:
        point = wanted[name]
        assert title.startswith(f"{point['model']}, {point['hosts']} host"), (name, title)
        assert fill == f"rgb{rgb(point['hosts'])}", (name, fill)
    return {name: (x, y) for name, _, _, x, y in dots}


def check_places(page, figure, places, points):
    """Right of it is what scales better, above it what gains more; the line at 1 is between."""
    left, right, at_one = page.evaluate(LINE % figure)
    base = figure.partition("-")[2]
    order_x = sorted(points, key=lambda point: point["ddp_acc"])
    for one, other in zip(order_x, order_x[1:]):
        a, b = (places[f"{point['model']}-{point['hosts']}"] for point in (one, other))
        assert a[0] <= b[0] + 0.1, (figure, one["model"], other["model"])
    for point in points:
        x, y = places[f"{point['model']}-{point['hosts']}"]
        ratio = point["acc_ratio"][base]["median"]
        assert left <= x <= right, (figure, point["model"])
        assert abs(y - at_one) < 1 if abs(ratio - 1) < 1e-3 else (y < at_one) == (ratio > 1), (figure, point["model"], ratio)


def check_pixels(page, path, places, points):
    """The colour is in the picture where the dot is, unless another dot is over it."""
    page.screenshot(path)
    picture = (image.imread(path)[..., :3] * 255).round()
    seen = 0
    for point in points:
        x, y = (round(each) for each in places[f"{point['model']}-{point['hosts']}"])
        around = picture[y - 2:y + 3, x - 2:x + 3].reshape(-1, 3)
        colours = {hosts for hosts in (1, 2, 4, 8) if (abs(around - rgb(hosts)).max(axis=1) <= 3).any()}
        assert colours, (point["model"], point["hosts"], around.tolist())
        seen += point["hosts"] in colours
    # Dots of one host all lie at (1, 1), and so do most that need no network.
    assert seen >= len(points) - len(MODELS), (seen, len(points))


def test_the_page_in_chromium():
    result = invent.result(scales=(0.5, 1, 2))
    points = [point for point in summary.points(result.launches) if point["compute_scale"] == 1]
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        path = os.path.join(scratch, "steps.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(webpage.as_html(result))
        check(browser, path, "steps", len(FIGURES))
        page = browser.open(path)
        for figure in FIGURES:
            caps = figure.partition("-")[0]
            own = [point for point in points if point["caps"] in (caps, "none")]
            assert len(own) == 4 * len(MODELS), len(own)
            places = check_dots(page, figure, own)
            check_places(page, figure, places, own)
            if caps == CAPPED:
                check_pixels(page, os.path.join(scratch, "page.png"), places, own)


def test_every_model_has_its_table():
    text = webpage.as_html(invent.result())
    for model in MODELS:
        assert f"<caption>{model}</caption>" in text, model
    assert "What is emulated, and how it is scaled" in text


def test_names_cannot_break_the_page():
    text = webpage.as_html(invent.result(models=('<b onload="x">&', "my-model 2"), hosts=(2,), rounds=1))
    assert "<b onload" not in text and "<title>my-model 2, 2 hosts</title>" in text
