# SPDX-License-Identifier: Apache-2.0
"""The result as text: targets, ratios, and what to be careful about; and as a picture."""
from benchmark.run import Failure

from training import summary
from training.result import wrong
from training.plan import CAPPED, CAPS_TEXT, LABELS, NO_NETWORK, UNCAPPED

CPU_LIMIT = 0.9  # busier, and the CPUs may be what is measured


def ratio_text(ratio):
    if not ratio:
        return "-"
    text = f"{ratio['median']:.2f}"
    return text if ratio["min"] == ratio["max"] else f"{text} ({ratio['min']:.2f}..{ratio['max']:.2f})"


def or_dash(value, form):
    return "-" if value is None else format(value, form)


def percent(value):
    return f"{value * 100:.0f} %"


def table_lines(title, rows, words=1):
    """The first row is the heading; so many first columns hold words, the others numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["", title, *("  " + "  ".join(cell.ljust(width) if column < words else cell.rjust(width)
                         for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)]


# ---- warnings ----

def warnings(result, points):
    found = []
    if wrong(result):
        found.append(f"{wrong(result)} elements of results were wrong.")
    found += [f"{LABELS[launch['variant']]} on {launch['hosts']} hosts, {CAPS_TEXT[launch['caps']]}, round {launch['round'] + 1}: "
              f"{launch['error']}" for launch in result["launches"] if launch["error"]]
    for caps in (CAPPED, UNCAPPED):
        for hosts in sorted({point["hosts"] for point in points}):
            found += cpu_warnings(result, caps, hosts)
    for point, base in summary.below_one(points):
        found.append(f"stratus is slower than {LABELS[base]}: {summary.place(point)}, {CAPS_TEXT[point['caps']]}: acc_ratio "
                     f"{ratio_text(point['acc_ratio'][base])}, Socket against itself {1 - (point['noise'] or 0):.2f}.")
    return found


def cpu_warnings(result, caps, hosts):
    busy = {}
    for launch in result["launches"]:
        if (launch["caps"], launch["hosts"], launch["compute_scale"]) == (caps, hosts, 1) and launch["cpu_busy"] is not None:
            busy.setdefault(LABELS[launch["variant"]], []).append(launch["cpu_busy"])
    high = {label: max(values) for label, values in busy.items() if max(values) > CPU_LIMIT}
    if not high:
        return []
    text = ", ".join(f"{label} {percent(value)}" for label, value in high.items())
    return [f"{hosts} hosts, {CAPS_TEXT[caps]}: the CPUs were busy ({text}). NCCL's waiting threads poll and count; but where "
            "NICs were not full and flows not capped, CPUs may be what was measured."]


# ---- tables ----

def targets_table(targets):
    met = {None: "too noisy to tell", True: "yes", False: "no"}
    return table_lines("TARGETS", [["flows", "what", "where", "is", "target", "met"]] + [
        [each["caps"], each["name"], each["where"] or "-", f"{each['is']:.2f}", each["target"], met[each["is_met"]]]
        for each in targets], words=3)


def ratios_table(points, base):
    """acc_ratio of every point, at a glance."""
    columns = list(dict.fromkeys((point["caps"], point["hosts"]) for point in points
                                 if point["caps"] != NO_NETWORK and point["compute_scale"] == 1))
    rows = [["model", *(f"{hosts} hosts, {caps}" for caps, hosts in columns)]]
    for model in dict.fromkeys(point["model"] for point in points):
        own = {(point["caps"], point["hosts"]): point for point in points
               if point["model"] == model and point["compute_scale"] == 1}
        rows.append([model, *(ratio_text(own[key]["acc_ratio"][base]) if key in own else "-" for key in columns)])
    return table_lines(f"acc_ratio against {LABELS[base]}", rows)


def sensitivity_table(points):
    """The settings whose compute was scaled, beside the job's own compute: most step times are guesses."""
    scaled = [point for point in points if point["compute_scale"] != 1 and point["caps"] != NO_NETWORK]
    if not scaled:
        return []
    setting = scaled[0]["caps"], scaled[0]["hosts"]
    own = [point for point in points if (point["caps"], point["hosts"]) == setting]
    scales = sorted({point["compute_scale"] for point in own})
    bases = [base for base in summary.BASES if any(point["acc_ratio"][base] for point in scaled)]
    labels = [LABELS[base] for base in bases]
    rows = [["model", *(f"compute x {scale:g}" for scale in scales)]]
    for model in dict.fromkeys(point["model"] for point in own):
        at = {point["compute_scale"]: point for point in own if point["model"] == model}
        rows.append([model, *(
            ", ".join([or_dash(at[scale]["ddp_acc"], ".2f"), *(ratio_text(at[scale]["acc_ratio"][base]) for base in bases)])
            if scale in at else "-" for scale in scales)])
    return table_lines(f"ddp_acc, acc_ratio against {', '.join(labels)}: {setting[1]} hosts, {CAPS_TEXT[setting[0]]}", rows)


# ---- the whole ----

def as_text(result):
    points = summary.points(result["launches"])
    targets = summary.targets(points)
    hosts = ", ".join(str(each) for each in sorted({point["hosts"] for point in points}))
    models = len({point["model"] for point in points})
    lines = [f"Training steps: {models} models on {hosts} emulated hosts", "",
             "Steps of training jobs, replayed through stock NCCL: with its Socket transport as it comes, with Socket 2x8 "
             "(NCCL_SOCKET_NTHREADS=2, NCCL_NSOCKS_PERTHREAD=8), and with stratus.",
             *(f"WARNING: {each}" for each in warnings(result, points)), *(targets_table(targets) if targets else [])]
    for base in summary.BASES:
        if any(point["acc_ratio"][base] for point in points):
            lines += ratios_table(points, base)
    return "\n".join([*lines, *sensitivity_table(points)]) + "\n"


def dots_of(points, caps, base):
    """Of one host too, in the plots with and without caps."""
    return [(point["model"], point["hosts"], point["ddp_acc"], point["acc_ratio"][base]["median"]) for point in points
            if point["caps"] in (caps, NO_NETWORK) and point["compute_scale"] == 1 and point["ddp_acc"]
            and point["acc_ratio"][base]]


def as_svg(result):
    """A dot is a model on a number of hosts. x: ddp_acc, samples/s of a rank with Socket over those on one host. y: acc_ratio,
    samples/s with stratus over those with Socket. The band is as far as Socket is from itself where that is most."""
    points = summary.points(result["launches"])
    for caps in (CAPPED, UNCAPPED):
        for base in summary.BASES:
            dots = dots_of(points, caps, base)
            if dots and any(point["caps"] == caps for point in points):
                return draw(result, points, dots, caps, base)
    raise Failure("nothing to draw: no model ran on several hosts with each transport")


def draw(result, points, dots, caps, base):
    from benchmark import picture  # pylint: disable=import-outside-toplevel
    from training import plot  # pylint: disable=import-outside-toplevel
    noise = max((point["noise"] for point in points if point["caps"] == caps and point["noise"] is not None
                 and point["compute_scale"] == 1), default=0)
    alt = (f"scripts/steps, {result['machine'].get('date', '')}, {result['machine'].get('stratus', '')}. {len(dots)} dots, from "
           f"{min(y for *_, y in dots):.2f} to {max(y for *_, y in dots):.2f} times as fast, over a scaling from "
           f"{min(x for _, _, x, _ in dots):.2f} to {max(x for _, _, x, _ in dots):.2f}; a line at 1.")
    title = f"{'With' if caps == CAPPED else 'Without'} caps of flows: stratus against {LABELS[base]}"
    return picture.svg_of(plot.draw(dots, noise, f"acc_ratio: stratus / {LABELS[base]}"), title, alt)
