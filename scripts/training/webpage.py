# SPDX-License-Identifier: Apache-2.0
"""The result as a page: the plots, the targets, a table for each model, and what is emulated."""
import re

from document import Document, Fact, Figure, Section, Table
from problem import Problem

from training import summary
from training.plan import CAPPED, CAPS_TEXT, LABELS, NO_NETWORK, OFF, STRATUS, UNCAPPED

CPU_LIMIT = 0.9  # busier, and the CPUs may be what is measured

DATA_TEXT = (
    "What ranks send: gradients of a small transformer from real training (tests/data/codec), of the type of the model's gradients. FSDP sends "
    "weights, too, which compress better. Where gradients are float32 and activations bfloat16 (stages, experts), all are float32, which compress "
    "worse. Where stratus compresses is its own choice.")

COLUMNS = ["flows", "hosts", "transport", "samples/s", "speed-up", "scaling", "acc_ratio", "step (ms)", "p50", "p95",
           "exposed (ms)", "CPU (s/step)", "NIC", "CPUs"]


def ratio_text(ratio):
    if not ratio:
        return "-"
    text = f"{ratio['median']:.2f}"
    return text if ratio["min"] == ratio["max"] else f"{text} ({ratio['min']:.2f}..{ratio['max']:.2f})"


def or_dash(value, form):
    return "-" if value is None else format(value, form)


def percent(value):
    return "-" if value is None else f"{value * 100:.0f} %"


# ---- texts ----

def emulation_texts(result):
    scale = result.scale
    rates = ", ".join(f"with {hosts} hosts {scale.nic_gbps(hosts):.3g} Gb/s each and bytes x {scale.bytes(hosts):.3g}"
                      for hosts in sorted({launch.hosts for launch in result.launches if launch.hosts > 1}))
    ranks = f"{result.ranks_per_host} rank{'s' if result.ranks_per_host > 1 else ''}"
    return [
        "Real: NCCL, unmodified, with its bootstrap, its proxies and its Socket transport; the plugins; TCP of the kernel; the "
        "sizes, order and buckets of the models' collectives, and that results are right.",
        f"Emulated: the hosts are network namespaces of one machine with {ranks} each, their NICs are shaped by HTB; GPUs are "
        "CPU threads, and compute is a stream that sleeps for the time that the workload file gives. Some of these times are "
        "guesses (tuner_plugin/workloads/README.md): scripts/steps --compute-scales shows how much they matter.",
        f"Scaled together: the NIC of the job has {scale.job_nic_gbps:g} Gb/s, and a flow of it, where flows are capped, "
        f"1/{1 / scale.flow_part:.3g} of that. Here all NICs together have {scale.all_nics_gbps:g} Gb/s, as much as the CPUs of "
        f"one machine can carry: {rates}. So each byte takes the same part of a step as in the job. Times are "
        + ("those of the job." if scale.time == 1 else f"{scale.time:g} times those of the job."),
        "Not scaled: round trips, the time a call takes, NCCL's own buffers, HTB's bursts of 128 KiB. They weigh more here "
        "than in the job, for every transport.",
        "Not there: the GPUs of one host among each other. A ring through N hosts with 8 GPUs each sends (8N - 1)/8(N - 1) "
        "times as much through a NIC as one through N hosts with one rank: 1.88 times on 2 hosts, 1.11 on 8.",
        *([DATA_TEXT] if any(launch.variant == OFF for launch in result.launches) else []),
        f"Protocol \"{result.protocol.name}\": {result.protocol.skip} step{'s' if result.protocol.skip != 1 else ''} that "
        f"do not count, the mean of {result.protocol.steps}, the median of {result.protocol.rounds} "
        f"round{'s' if result.protocol.rounds != 1 else ''}. In a round each transport has one launch with all models, Socket "
        "two; each round begins with another transport. acc_ratio is formed within a round; in brackets its extremes."]


def warnings(result, points):
    found = []
    if result.wrong:
        found.append(f"{result.wrong} elements of results were wrong.")
    errors = [launch for launch in result.launches if launch.error]
    found += [f"{LABELS[launch.variant]} on {launch.hosts} hosts, {CAPS_TEXT[launch.caps]}, round {launch.round + 1}: "
              f"{launch.error}" for launch in errors]
    for caps in (CAPPED, UNCAPPED):
        for hosts in sorted({point["hosts"] for point in points}):
            found += cpu_warnings(result, caps, hosts)
    for point, base in summary.below_one(points):
        found.append(f"stratus is slower than {LABELS[base]}: {summary.place(point)}, {CAPS_TEXT[point['caps']]}: acc_ratio "
                     f"{ratio_text(point['acc_ratio'][base])}, Socket against itself {1 - (point['noise'] or 0):.2f}.")
    return found


def cpu_warnings(result, caps, hosts):
    busy = {}
    for launch in result.launches:
        if (launch.caps, launch.hosts, launch.compute_scale) == (caps, hosts, 1) and launch.cpu_busy is not None:
            busy.setdefault(LABELS[launch.variant], []).append(launch.cpu_busy)
    high = {label: max(values) for label, values in busy.items() if max(values) > CPU_LIMIT}
    if not high:
        return []
    text = ", ".join(f"{label} {percent(value)}" for label, value in high.items())
    return [f"{hosts} hosts, {CAPS_TEXT[caps]}: the CPUs were busy ({text}). NCCL's waiting threads poll and count; but where "
            "NICs were not full and flows not capped, CPUs may be what was measured."]


# ---- figures and tables ----

def dots_of(points, caps, base):
    """Of one host too, in the plots with and without caps."""
    return [(point["model"], point["hosts"], point["ddp_acc"], point["acc_ratio"][base]["median"]) for point in points
            if point["caps"] in (caps, NO_NETWORK) and point["compute_scale"] == 1 and point["ddp_acc"]
            and point["acc_ratio"][base]]


def plot_figure(points, caps, base):
    dots = dots_of(points, caps, base)
    title = f"{'With' if caps == CAPPED else 'Without'} caps of flows: stratus against {LABELS[base]}"
    noise = max((point["noise"] for point in points if point["caps"] == caps and point["noise"] is not None
                 and point["compute_scale"] == 1), default=0)
    rows = [[model, str(hosts), f"{x:.3f}", f"{y:.3f}"] for model, hosts, x, y in dots]
    alt = (f"{len(dots)} dots, from {min(y for *_, y in dots):.2f} to {max(y for *_, y in dots):.2f} times as fast, over a "
           f"scaling from {min(x for _, _, x, _ in dots):.2f} to {max(x for _, _, x, _ in dots):.2f}; a line at 1.")

    def draw():  # reports in text need no matplotlib
        from training import plot  # pylint: disable=import-outside-toplevel
        return plot.draw(dots, noise, f"acc_ratio: stratus / {LABELS[base]}")
    return Figure(f"{caps}-{base}", title, alt, draw, Table(title, ["model", "hosts", "ddp_acc", "acc_ratio"], rows))


def plot_section(points):
    section = Section("Plots", [
        "A dot is a model on a number of hosts. x: ddp_acc, samples/s of a rank with Socket over those on one host. y: "
        "acc_ratio, samples/s with stratus over those with Socket. The band is as far as Socket is from itself where that is "
        "most."])
    for caps in (CAPPED, UNCAPPED):
        for base in summary.BASES:
            if any(point["caps"] == caps for point in points) and dots_of(points, caps, base):
                section.figures.append(plot_figure(points, caps, base))
    return section


def targets_table(targets):
    table = Table("Targets", ["flows", "what", "where", "is", "target", "met"], [], words=3)
    for number, each in enumerate(targets):
        met = {None: "too noisy to tell", True: "yes", False: "no"}[each["is_met"]]
        table.rows.append([each["caps"], each["name"], each["where"] or "-", f"{each['is']:.2f}", each["target"], met])
        table.marks[number, 5] = {None: "quiet", True: "good", False: "bad"}[each["is_met"]]
    return table


def ratios_table(points, base):
    """acc_ratio of every point, at a glance."""
    columns = list(dict.fromkeys((point["caps"], point["hosts"]) for point in points
                                 if point["caps"] != NO_NETWORK and point["compute_scale"] == 1))
    table = Table(f"acc_ratio against {LABELS[base]}",
                  ["model", *(f"{hosts} hosts, {caps}" for caps, hosts in columns)], [])
    for model in dict.fromkeys(point["model"] for point in points):
        own = {(point["caps"], point["hosts"]): point for point in points
               if point["model"] == model and point["compute_scale"] == 1}
        table.rows.append([model, *(ratio_text(own[key]["acc_ratio"][base]) if key in own else "-" for key in columns)])
    return table


def model_row(point, key):
    figures = point["variants"][key]
    base_rate = figures["speed_up"] / point["hosts"] if figures["speed_up"] else None
    ratios = {STRATUS: "; ".join(ratio_text(ratio) for ratio in point["acc_ratio"].values() if ratio) or "-"}
    return [point["caps"], str(point["hosts"]), LABELS[key], f"{figures['samples_per_s']:.1f}",
            or_dash(figures["speed_up"], ".2f"), or_dash(base_rate, ".3f"), ratios.get(key, "-"),
            f"{figures['step_ms']:.1f}", f"{figures['p50_ms']:.1f}", f"{figures['p95_ms']:.1f}",
            f"{figures['exposed_ms']:.1f}", f"{figures['cpu_s_per_step']:.3f}", percent(figures["nic_use"]),
            percent(figures["cpu_busy"])]


def model_section(model, points):
    table = Table(model, COLUMNS, [], words=3)
    for point in points:
        if point["model"] == model and point["compute_scale"] == 1:
            table.rows += [model_row(point, key) for key in point["variants"]]
    return table


def sensitivity_table(points):
    """The settings whose compute was scaled, beside the job's own compute."""
    scaled = [point for point in points if point["compute_scale"] != 1 and point["caps"] != NO_NETWORK]
    if not scaled:
        return None
    setting = scaled[0]["caps"], scaled[0]["hosts"]
    own = [point for point in points if (point["caps"], point["hosts"]) == setting]
    scales = sorted({point["compute_scale"] for point in own})
    bases = [base for base in summary.BASES if any(point["acc_ratio"][base] for point in scaled)]
    labels = [LABELS[base] for base in bases]
    table = Table(f"ddp_acc, acc_ratio against {', '.join(labels)}: {setting[1]} hosts, {CAPS_TEXT[setting[0]]}",
                  ["model", *(f"compute x {scale:g}" for scale in scales)], [])
    for model in dict.fromkeys(point["model"] for point in own):
        at = {point["compute_scale"]: point for point in own if point["model"] == model}
        table.rows.append([model, *(
            ", ".join([or_dash(at[scale]["ddp_acc"], ".2f"), *(ratio_text(at[scale]["acc_ratio"][base]) for base in bases)])
            if scale in at else "-" for scale in scales)])
    return table


# ---- the whole ----

def facts(targets):
    marks = {True: "good", False: "bad", None: ""}
    return [Fact(f"{each['name']}, {each['caps']}", f"{each['is']:.2f}", f"target {each['target']}"
                 + (f"; {each['where']}" if each["where"] else ""), marks[each["is_met"]]) for each in targets]


def summary_document(result):
    """What is printed: without plots and tables of single models."""
    points = summary.points(result.launches)
    targets = summary.targets(points)
    hosts = ", ".join(str(each) for each in sorted({point["hosts"] for point in points}))
    models = len({point["model"] for point in points})
    document = Document(
        f"Training steps: {models} models on {hosts} emulated hosts", [
            "Steps of training jobs, replayed through stock NCCL: with its Socket transport as it comes, with Socket 2x8 "
            "(NCCL_SOCKET_NTHREADS=2, NCCL_NSOCKS_PERTHREAD=8), and with stratus."],
        [], [], warnings(result, points))
    document.sections.append(Section("Targets", tables=[targets_table(targets)] if targets else []))
    document.sections.append(Section("Ratios", tables=[
        ratios_table(points, base) for base in summary.BASES if any(point["acc_ratio"][base] for point in points)]))
    sensitivity = sensitivity_table(points)
    if sensitivity:
        document.sections.append(Section("If compute took longer or shorter", [
            "Most step times are guesses: the same with times x 0.5 and so on."], tables=[sensitivity]))
    return document


def whole_document(result):
    document = summary_document(result)
    points = summary.points(result.launches)
    document.facts = facts(summary.targets(points))
    document.sections.insert(0, plot_section(points))
    document.sections.append(Section("Models", [
        "samples/s: of one rank. speed-up: of all ranks, over one host with Socket; scaling: that over the number of hosts, "
        "for Socket ddp_acc. acc_ratio: stratus against Socket; against Socket 2x8; where ranks send "
        "numbers, against stratus without compression. exposed: step less compute, communication that compute did not hide. "
        "CPU: of a rank's process. NIC: sent bytes over what the NICs can send meanwhile. CPUs: of the whole machine during the steps; NCCL's waiting threads count, as they poll. Where Socket "
        "waits for its caps they are as busy as anywhere: only a NIC that is full, or not, tells what the limit is."],
        tables=[model_section(model, points) for model in dict.fromkeys(point["model"] for point in points)]))
    document.sections.append(Section("What is emulated, and how it is scaled", emulation_texts(result)))
    document.sections.append(Section("Measured on", tables=[
        Table("Machine", ["what", "value"], [[name, text] for name, text in result.machine.items()], words=2)]))
    return document


def with_names(text, dots, page):
    """A dot tells its model when the pointer is on it."""
    from training import plot  # pylint: disable=import-outside-toplevel
    names = {(plot.anchor(point["model"]), str(point["hosts"])): f"{point['model']}, {point['hosts']} "
             f"host{'s' if point['hosts'] > 1 else ''}" for point in dots}
    return re.sub(r'<g id="[\w-]+-dot-(\w+)-(\d)">', lambda dot: f"{dot[0]}<title>{page.escape(names[dot[1], dot[2]])}</title>",
                  text)


def as_html(result):
    import page  # pylint: disable=import-outside-toplevel
    text = page.as_html(whole_document(result), f"Made by scripts/steps, {result.machine.get('date', '')}. This page asks "
                                                "nothing of any network.")
    return with_names(text, summary.points(result.launches), page)


def as_svg(result):
    """The first plot, for a document."""
    import page  # pylint: disable=import-outside-toplevel
    figures = plot_section(summary.points(result.launches)).figures
    if not figures:
        raise Problem("nothing to draw: no model ran on several hosts with each transport")
    first = figures[0]
    made = f"scripts/steps, {result.machine.get('date', '')}, {result.machine.get('stratus', '')}. "
    return page.svg_file(first.draw(), first.title, made + first.alt)
