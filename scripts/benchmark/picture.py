# SPDX-License-Identifier: Apache-2.0
"""Pictures for documents: matplotlib's, as SVG files that need nothing else.

Colours of lines differ for colour-blind readers as well, and in lightness; lines have markers and dashes of their own
besides. All texts have a contrast of 4.5 and more to what is behind them."""
import html
import io
import math
import re

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

COLOURS = {
    "page": "#ffffff", "text": "#1a1f26", "soft": "#57606a", "rule": "#d5dae0", "grid": "#e3e7ec",
    # Lines.
    "base": "#57606a", "chosen": "#0b57a8", "line0": "#c04a00",
    # Dots, by the number of hosts: blue, orange, red, green.
    "hosts1": "#1f6fd0", "hosts2": "#d06c00", "hosts4": "#c8202a", "hosts8": "#2a8c3a",
}

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "stratus", "font.size": 9.5, "axes.titlesize": 10, "axes.labelsize": 9.5,
    "axes.edgecolor": COLOURS["rule"], "axes.labelcolor": COLOURS["text"], "text.color": COLOURS["text"],
    "xtick.color": COLOURS["soft"], "ytick.color": COLOURS["soft"], "xtick.labelcolor": COLOURS["text"],
    "ytick.labelcolor": COLOURS["text"], "axes.titlecolor": COLOURS["text"], "grid.color": COLOURS["grid"],
    "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8, "lines.markersize": 4.5,
    "figure.max_open_warning": 0})


def legend_above(figure, handles, labels, columns):
    """Over all axes, which make room. (matplotlib 3.6 has no "outside" for legends yet.)"""
    lines = math.ceil(len(labels) / columns)
    room = (0.205 * lines + 0.06) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room))
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, 1), ncol=columns, borderaxespad=0.2,
                  handlelength=2.2, columnspacing=1.4)


def size_axis(axes, sizes, room=9):
    """Logarithmic; as many of the sizes are named as have room."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    step = max(1, math.ceil(len(sizes) / room))
    shown = sizes[::-1][::step][::-1]
    axes.set_xticks(shown, [size_label(size) for size in shown])
    axes.set_xlim(sizes[0] / 1.4, sizes[-1] * 1.4)
    axes.set_xlabel("size (bytes)")


def ratio_ticks(low, high):
    """Round ratios between, six or so."""
    for steps in ((0.9, 0.95, 1, 1.05, 1.1), (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4), (0.5, 0.6, 0.7, 0.8, 1, 1.25, 1.5, 2),
                  (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8)):
        if low >= steps[0] / 1.1 and high <= steps[-1] * 1.1:
            return [step for step in steps if low <= step <= high]
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, (last - first) // 7)
    return [2.0 ** power for power in range(first - first % step, last + 1, step) if low <= 2.0 ** power <= high]


def size_label(size):
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def svg_of(figure, title, alt):
    """The text of an SVG file, on a colour of its own, whichever a document has. `alt` is for those who do not see it."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Hundredths of a point are enough for places; numbers that people read stand between tags.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d{2})\d+", r"\1", tag.group(0)), svg)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 sans-serif", re.sub(r"\s*\n\s*", "\n", svg))
    box = re.search(r'viewBox="([^"]*)"', svg).group(1)
    _, _, width, height = box.split()
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" '
            f'width="{float(width) * 4 / 3:.0f}" role="img" aria-labelledby="title alt">'
            f'<title id="title">{html.escape(title)}</title><desc id="alt">{html.escape(alt)}</desc>'
            "<style>text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif!important}</style>"
            f'<rect width="{width}" height="{height}" fill="{COLOURS["page"]}"/>')
    return head + svg[svg.index(">") + 1:]
