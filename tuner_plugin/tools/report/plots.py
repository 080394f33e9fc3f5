# SPDX-License-Identifier: Apache-2.0
"""The pictures, by matplotlib."""
import math

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as pyplot  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from compare import limit_of  # noqa: E402
from lines import BEST, CHOSEN, DEFAULT  # noqa: E402
from points import size_text  # noqa: E402
from theme import COLOURS, HEAT_STEPS  # noqa: E402

WIDE = 11.2  # inches
MARKERS, DASHES = "osD^vP", ((None, None), (5, 1.5), (3, 1, 1, 1), (1, 1), (6, 1, 1, 1), (2, 2))
# Upper ends of the steps of the slowdown against the best cell.
SLOWDOWN_STEPS = (1.02, 1.05, 1.10, 1.25, 1.50)

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "stratus", "font.size": 9.5, "axes.titlesize": 10, "axes.labelsize": 9.5,
    "axes.edgecolor": COLOURS["rule"], "axes.labelcolor": COLOURS["text"], "text.color": COLOURS["text"],
    "xtick.color": COLOURS["soft"], "ytick.color": COLOURS["soft"], "xtick.labelcolor": COLOURS["text"],
    "ytick.labelcolor": COLOURS["text"], "axes.titlecolor": COLOURS["text"], "grid.color": COLOURS["grid"],
    "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8, "lines.markersize": 4.5,
    "figure.max_open_warning": 0})


def figure_of(height, rows=1, columns=1):
    figure, axes = pyplot.subplots(rows, columns, figsize=(WIDE, height), squeeze=False, layout="constrained")
    figure.patch.set_visible(False)
    for each in axes.flat:
        each.patch.set_visible(False)
    return figure, axes


def legend_above(figure, handles, labels, columns):
    """Over all axes, which make room. (matplotlib 3.6 has no "outside" for legends yet.)"""
    lines = math.ceil(len(labels) / columns)
    room = (0.205 * lines + 0.06) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room))
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, 1), ncol=columns, borderaxespad=0.2,
                  handlelength=2.2, columnspacing=1.4)


# ---- lines over sizes ----

def size_axis(axes, sizes, room=9):
    """Logarithmic; as many of the sizes are named as have room."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    step = max(1, math.ceil(len(sizes) / room))
    shown = sizes[::-1][::step][::-1]
    axes.set_xticks(shown, [size_text(size) for size in shown])
    axes.set_xlim(sizes[0] / 1.4, sizes[-1] * 1.4)
    axes.set_xlabel("size (bytes)")


def style_of(shape, line):
    """Colour, marker and dashes."""
    if line is shape.base:
        return {"color": COLOURS["base"], "marker": "o", "dashes": (4, 2), "zorder": 3}
    if line.role == CHOSEN:
        return {"color": COLOURS["chosen"], "marker": "s", "zorder": 5}
    if line.role == BEST:
        return {"color": COLOURS["best"], "marker": "_", "dashes": (1, 1.2), "zorder": 4, "markersize": 8}
    runs = [each for each in shape.lines if each.role not in (DEFAULT, CHOSEN, BEST) and each is not shape.base]
    place = runs.index(line)
    # The chosen's colour is taken where there is one.
    has_chosen = any(each.role == CHOSEN for each in shape.lines)
    colours = (0, 2, 4, 5, 3, 1) if has_chosen else (1, 0, 3, 2, 4, 5)
    return {"color": COLOURS[f"line{colours[place % 6]}"], "marker": MARKERS[(place + 1) % 6],
            "dashes": DASHES[place // 6 % 6], "zorder": 4}


def plot_line(axes, shape, line, values):
    style = {key: value for key, value in style_of(shape, line).items()
             if key != "dashes" or value != (None, None)}
    sizes = [size for size in shape.sizes if values.get(size) is not None]
    if sizes:
        axes.plot(sizes, [values[size] for size in sizes], label=line.label, **style)


def draw_shape(shape):
    """Bandwidth, and beside it how many times as fast as the base each line is."""
    has_ratio = len(shape.lines) > 1
    figure, all_axes = figure_of(3.4 + 0.2 * math.ceil(len(shape.lines) / 3), 1, 2 if has_ratio else 1)
    first = all_axes.flat[0]
    for line in shape.lines:
        plot_line(first, shape, line, {size: at.busbw for size, at in line.at.items()})
    size_axis(first, shape.sizes)
    first.set_ylim(bottom=0)
    first.set_ylabel("bus bandwidth (GB/s)")
    first.set_title("Bus bandwidth", loc="left")
    if has_ratio:
        draw_ratios(all_axes.flat[1], shape)
    handles, labels = first.get_legend_handles_labels()
    if not handles:
        handles, labels = all_axes.flat[-1].get_legend_handles_labels()
    legend_above(figure, handles, [shorten(label, 32) for label in labels], min(3, len(labels)))
    return figure


def shorten(text, most):
    return text if len(text) <= most else text[:most - 3] + "..."


def draw_ratios(axes, shape):
    base = shape.base
    sizes = sorted(base.at)
    limits = [limit_of(base.at[size].noise) for size in sizes]
    axes.fill_between(sizes, [1 / (1 + limit) for limit in limits], [1 + limit for limit in limits],
                      color=COLOURS["base"], alpha=0.16, linewidth=0)
    axes.axhline(1, color=COLOURS["base"], linewidth=1.2, dashes=(4, 2))
    seen = [1 / 1.1, 1.1]
    for line in shape.lines:
        if line is not base:
            values = {size: base.at[size].time_us / at.time_us for size, at in line.at.items() if size in base.at}
            seen += values.values()
            plot_line(axes, shape, line, values)
    size_axis(axes, shape.sizes)
    axes.set_yscale("log", base=2)
    low, high = min(seen) / 1.08, max(seen) * 1.08
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(matplotlib.ticker.FixedLocator(ratio_ticks(low, high)))
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_ylabel("times as fast")
    axes.set_title(f"Against {shorten(base.label, 22)} (band: noise)", loc="left")


def ratio_ticks(low, high):
    """Round ratios between, six or so."""
    for steps in ((0.9, 0.95, 1, 1.05, 1.1), (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4), (0.5, 0.6, 0.7, 0.8, 1, 1.25, 1.5, 2),
                  (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8)):
        if low >= steps[0] / 1.1 and high <= steps[-1] * 1.1:
            return [step for step in steps if low <= step <= high]
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, (last - first) // 7)
    return [2.0 ** power for power in range(first - first % step, last + 1, step) if low <= 2.0 ** power <= high]


# ---- matrices ----

def step_of(value, steps):
    return sum(value > each for each in steps)


def draw_cells(axes, values, steps, row_names, column_names, text):
    """`values`: {(row, column): number}, whose step gives the colour; `text`: of a place. What is missing is a dot."""
    axes.set_xlim(0, len(column_names))
    axes.set_ylim(len(row_names), 0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)
    many = max(len(column_names), len(row_names)) > 24
    for row in range(len(row_names)):
        for column in range(len(column_names)):
            value = values.get((row, column))
            step = None if value is None else step_of(value, steps)
            axes.add_patch(Rectangle((column + 0.03, row + 0.04), 0.94, 0.92, linewidth=0,
                                     color=COLOURS["panel" if step is None else f"heat{step}"]))
            if not many:
                axes.text(column + 0.5, row + 0.5, "·" if step is None else text((row, column)), ha="center", va="center",
                          fontsize=8.5, color=COLOURS["soft" if step is None else f"ink{step}"])
    each = max(1, math.ceil(len(column_names) / 32))
    axes.set_xticks([place + 0.5 for place in range(len(column_names))][::each], column_names[::each])
    each = max(1, math.ceil(len(row_names) / 32))
    axes.set_yticks([place + 0.5 for place in range(len(row_names))][::each], row_names[::each])


def step_legend(figure, names):
    handles = [Rectangle((0, 0), 1, 1, color=COLOURS[f"heat{step}"]) for step in range(len(names))]
    legend_above(figure, handles, names, len(names))


def slowdown_names():
    ends = [f"{end:.2f}" for end in SLOWDOWN_STEPS]
    return [f"to {ends[0]}", *[f"to {end}" for end in ends[1:]], f"over {ends[-1]}"]


def draw_slowdown(panels, sizes, node_names):
    """`panels`: [(title, {(node, size): slowdown})], by places."""
    count = len(panels)
    figure, all_axes = figure_of((0.34 * len(node_names) + 0.85) * count + 0.35, count)
    names = [size_text(size) for size in sizes]
    for axes, (title, values) in zip(all_axes.flat, panels):
        draw_cells(axes, values, SLOWDOWN_STEPS, node_names, names, lambda place, all=values: f"{all[place]:.2f}")
        axes.set_ylabel("nodes")
        axes.set_xlabel("size (bytes)")
        axes.set_title(shorten(title, 110), loc="left")
    step_legend(figure, slowdown_names())
    return figure


assert HEAT_STEPS == len(SLOWDOWN_STEPS) + 1


# ---- two measurements ----

def draw_comparison(rows, limits, verdicts):
    """`rows`: {size: B's speed against A's}, with what counts as noise and the verdict of each."""
    sizes = sorted(rows)
    figure, all_axes = figure_of(3.1)
    axes = all_axes.flat[0]
    axes.fill_between(sizes, [1 / (1 + limits[size]) for size in sizes], [1 + limits[size] for size in sizes],
                      color=COLOURS["base"], alpha=0.16, linewidth=0, label="same within noise")
    axes.axhline(1, color=COLOURS["base"], linewidth=1.2, dashes=(4, 2))
    axes.plot(sizes, [rows[size] for size in sizes], color=COLOURS["base"], linewidth=1)
    looks = (("same", "base", "o"), ("faster", "good", "^"), ("slower", "bad", "v"), ("wrong values", "bad", "X"))
    for verdict, colour, marker in looks:
        chosen = [size for size in sizes if verdicts[size] == verdict]
        if chosen:
            axes.plot(chosen, [rows[size] for size in chosen], marker, color=COLOURS[colour], markersize=7, label=verdict)
    size_axis(axes, sizes)
    axes.set_yscale("log", base=2)
    low, high = min(0.92, *rows.values()) / 1.1, max(1.08, *rows.values()) * 1.1
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(matplotlib.ticker.FixedLocator(ratio_ticks(low, high)))
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_ylabel("B: times as fast as A")
    handles, labels = axes.get_legend_handles_labels()
    legend_above(figure, handles, labels, 5)
    return figure
