# SPDX-License-Identifier: Apache-2.0
"""The plot of AIACC-ACSpeed: a dot for each model and number of hosts, where its scaling and its gain are."""
import re

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmark.picture import COLOURS, legend_above, pyplot, ratio_ticks

SIZE = (11.2, 4.6)  # inches
HOSTS = (1, 2, 4, 8)  # with a colour of their own: blue, orange, red, green
MARKERS = {1: "s", 2: "o", 4: "D", 8: "^"}  # for those who see no colours


def look(hosts):
    """Colour and marker; of another number those of the next smaller one."""
    nearest = max(each for each in HOSTS if each <= hosts)
    return COLOURS[f"hosts{nearest}"], MARKERS[nearest]


def anchor(model):
    """As part of an id of the picture."""
    return re.sub(r"\W", "_", model, flags=re.ASCII)


def draw(dots, noise, y_label):
    """`dots`: [(model, hosts, x, y)]; each becomes an element of the picture with the id dot-MODEL-HOSTS."""
    figure, axes = pyplot.subplots(figsize=SIZE, layout="constrained")
    axes.patch.set_visible(False)
    axes.axhspan(1 - noise, 1 / (1 - noise), color=COLOURS["base"], alpha=0.16, linewidth=0)
    axes.axhline(1, color=COLOURS["base"], linewidth=1.2, gid="line-at-1")
    for model, hosts, x, y in dots:
        colour, marker = look(hosts)
        axes.plot([x], [y], linestyle="none", marker=marker, markersize=8, color=colour,
                  markeredgecolor=COLOURS["page"], markeredgewidth=0.8, gid=f"dot-{anchor(model)}-{hosts}",
                  label=f"{hosts} host{'s' if hosts > 1 else ''}", zorder=3)
    axes.set_xlim(0, max(1.05, *(x * 1.05 for _, _, x, _ in dots)))
    axes.set_yscale("log", base=2)
    low, high = min(0.9, *(y for *_, y in dots)) / 1.05, max(1.2, *(y for *_, y in dots)) * 1.08
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(FixedLocator(ratio_ticks(low, high)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ddp_acc: scaling with Socket")
    axes.set_ylabel(y_label)
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(sorted(zip(labels, handles), key=lambda each: int(each[0].split()[0])))
    legend_above(figure, list(shown.values()), list(shown), 4)
    return figure
