# SPDX-License-Identifier: Apache-2.0
"""What `stratus-net stats --json` prints, once or with --watch a document in each line: the counters of NICs and
connections at the end, and for a stream the rates in between. All counters are shown under their own names."""
import redact
from document import Section, Table
from points import number_text
from problem import Problem
from strict_json import Document

PROCESSES_MAX = 4096
# Counters of a NIC that are bytes: shown as rates too.
RATES = {"bytes_sent": "sent (GB/s)", "bytes_received": "received (GB/s)"}


def is_stats(value):
    return isinstance(value, dict) and isinstance(value.get("processes"), list)


def looks_like_stats_stream(text):
    """--watch prints each document in one line; a single one has several."""
    return text.lstrip().startswith('{"processes":')


def read_stats_stream(source, text):
    documents = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            documents.append(Document(source.path, line, number))
        except Problem as problem:
            if number != len(lines):
                raise problem.at(source.path) from None
            source.notes.append(f"line {number} is incomplete and was skipped: its writer was interrupted")
    read_stats(source, documents)


def read_stats(source, documents):
    source.kind = "stratus-net stats JSON"
    source.facts["snapshots"] = str(len(documents))
    nics, connections, rates = Counters(), Counters(), []
    before = {}
    for document in documents:
        nics, connections = Counters(), Counters()  # of the last one
        if not is_stats(document.root.value):
            document.root.fail("must have the list \"processes\", as stratus-net stats --json prints it")
        for count, process in enumerate(document.root.get("processes").each(), 1):
            if count > PROCESSES_MAX:
                process.fail(f"more than {PROCESSES_MAX} processes")
            take_process(process, nics, connections, rates, before)
    section = Section("Statistics of processes")
    if not nics.rows:
        section.paragraphs.append("No process of this plugin was running.")
    for table in (rates_table(rates), nics.table("NICs, counters at the end", ["process", "NIC"]),
                  connections.table("Connections at the end", ["process", "connection", "role", "peer", "NIC", "error"])):
        if table.rows:
            section.tables.append(table)
    source.sections.append(section)


class Counters:
    """Rows of names and counters; a column for each counter that any row has."""

    def __init__(self):
        self.rows, self.columns = [], {}

    def add(self, names, node, skipped=()):
        counters = {}
        for key, each in node.items():
            if key not in skipped and isinstance(each.value, (int, float)) and not isinstance(each.value, bool):
                value = each.number(-1e15, 1e20)
                counters[redact.text(key)] = str(int(value)) if value == int(value) else number_text(value)
        self.columns.update(dict.fromkeys(counters))
        self.rows.append((names, counters))

    def table(self, title, names):
        return Table(title, [*names, *(column.replace("_", " ") for column in self.columns)],
                     [[*words, *(counters.get(column, "-") for column in self.columns)] for words, counters in self.rows],
                     words=len(names))


def process_name(process):
    rank = f" rank {process.get('rank').text(64)}" if process.has("rank") else ""
    return redact.text(f"{process.get('host').text(256)} {process.get('pid').integer()}{rank}")


def take_process(process, nics, connections, rates, before):
    name, uptime = process_name(process), process.get("uptime_seconds").number()
    for nic in process.get("nics").each():
        nic_name = redact.text(nic.get("name").text(256))
        nics.add([name, nic_name], nic)
        now = {key: nic.get(key).integer() for key in RATES if nic.has(key)}
        earlier, since = before.get((name, nic_name), (None, 0))
        if earlier is not None and uptime > since:
            rates.append([name, nic_name, number_text(uptime), *(
                number_text((now[key] - earlier[key]) / (uptime - since) / 1e9) if key in now and key in earlier else "-"
                for key in RATES)])
        before[name, nic_name] = now, uptime
    for each in process.get("connections").each():
        error = redact.text(each.get("error").text()) if each.has("error") else "-"
        connections.add([name, str(each.get("connection").integer()), redact.text(each.get("role").text(64)),
                         redact.text(each.get("peer").text(256)), redact.text(each.get("nic").text(256)), error],
                        each, ("connection",))


def rates_table(rates):
    return Table("Rates of NICs between snapshots", ["process", "NIC", "uptime (s)", *RATES.values()], rates, words=2)
