# SPDX-License-Identifier: Apache-2.0
"""What scripts/demo measured as an SVG file: bandwidth of each transport, and how many times as fast as the better of both
Socket settings stratus is."""
from benchmark import demo, picture
from benchmark.case import size_text

STYLES = {"socket": {"color": "base", "marker": "o", "dashes": (4, 2)},
          "socket-aws": {"color": "line0", "marker": "^", "dashes": (1, 1.2)},
          "stratus": {"color": "chosen", "marker": "s"}}
SIZE = (8.6, 3.3)  # inches; a README is about as wide


def title_of(document):
    return f"AllReduce: {demo.network_text(document)}"


def alt_of(document):
    """For those who do not see it. Date and commit tell of which measurement the picture is."""
    sizes = demo.sizes_of(document["runs"])
    best, worst = demo.best_and_worst(sizes)
    return (f"scripts/demo, {document['date']}, {document['commit']}. At {size_text(sizes[-1].bytes)} stratus has "
            f"{sizes[-1]['stratus']['busbw_gbs']:.3f} GB/s, Socket {sizes[-1]['socket']['busbw_gbs']:.3f}, Socket as on AWS "
            f"{sizes[-1]['socket-aws']['busbw_gbs']:.3f}. Against the better Socket: {worst.ratio:.2f} times as fast at "
            f"{size_text(worst.bytes)}, {best.ratio:.2f} at {size_text(best.bytes)}.")


def draw_bandwidth(axes, document, sizes, colours):
    for net in demo.TRANSPORTS:
        style = {**STYLES[net], "color": colours[STYLES[net]["color"]]}
        axes.plot([size.bytes for size in sizes], [size[net]["busbw_gbs"] for size in sizes], label=demo.LABELS[net], **style)
    for key, text in (("nic_gbps", "NIC"), ("flow_gbps", "one flow")):
        limit_gbs = document["limit"][key] / 8
        if limit_gbs:
            axes.axhline(limit_gbs, color=colours["soft"], linewidth=1)
            axes.annotate(text, (sizes[0].bytes, limit_gbs), (0, -3), textcoords="offset points", va="top",
                          color=colours["soft"])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("bus bandwidth (GB/s)")
    axes.set_title("AllReduce", loc="left")


def draw_ratio(axes, sizes, colours):
    ratios = [size.ratio for size in sizes]
    axes.axhline(1, color=colours["base"], linewidth=1.2, dashes=(4, 2))
    axes.plot([size.bytes for size in sizes], ratios, color=colours["chosen"], marker="s")
    low, high = min(0.9, *ratios) / 1.05, max(1.1, *ratios) * 1.08
    axes.set_yscale("log", base=2)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(picture.matplotlib.ticker.FixedLocator(picture.ratio_ticks(low, high)))
    axes.yaxis.set_minor_locator(picture.matplotlib.ticker.NullLocator())
    axes.yaxis.set_major_formatter(picture.matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("times as fast")
    axes.set_title("stratus against the better Socket", loc="left")


def as_svg(document):
    sizes = demo.sizes_of(document["runs"])
    figure, (left, right) = picture.pyplot.subplots(1, 2, figsize=SIZE, layout="constrained")
    draw_bandwidth(left, document, sizes, picture.COLOURS)
    draw_ratio(right, sizes, picture.COLOURS)
    for axes in (left, right):
        axes.patch.set_visible(False)
        picture.size_axis(axes, [size.bytes for size in sizes], room=6)
    picture.legend_above(figure, *left.get_legend_handles_labels(), 3)
    return picture.svg_of(figure, title_of(document), alt_of(document))
