# SPDX-License-Identifier: Apache-2.0
"""What `stratus-net perf --json` prints: a row for each message size, and the TCP connections if --flows was given."""
import redact
from document import Section, Table
from points import BYTES_MAX, number_text, size_text


def is_perf(value):
    return isinstance(value, dict) and value.get("tool") == "stratus-net perf"


def read_perf(source, document):
    root = document.root
    source.kind = "stratus-net perf JSON"
    plan = root.get("plan")
    source.facts["test"] = redact.text(root.get("test").text(64))
    source.facts["stratus"] = redact.text(root.get("version").text(64))
    for side in ("client", "server"):
        source.facts[side] = redact.text(root.get(side).get("transport").text(256))
    source.facts["connections"] = str(plan.get("connections").integer())
    table = Table("By message size; rates are those of the receiving side",
                  ["message (B)", "GB/s", "messages/s", "half round trip p50 (us)", "p99 (us)", "CPU s per GB", "wrong"], [])
    tables = [table]
    for each in root.get("rounds").each():
        take_round(source, table, each)
        for side in ("client", "server"):
            if each.get(side).has("flows"):
                tables.append(flows_table(f"{table.rows[-1][0]} B, TCP connections of the {side}", each.get(side).get("flows")))
    source.sections.append(Section("Plugin performance", tables=tables))


def take_round(source, table, each):
    trip = each.get("half_round_trip_us")
    times = ["-", "-"] if trip.value is None else [number_text(trip.get(key).number()) for key in ("p50", "p99")]
    wrong = each.get("wrong_messages").integer()
    if wrong:
        table.marks[len(table.rows), 6] = "bad"
        source.notes.append(f"{wrong} messages had wrong contents")
    table.rows.append([size_text(each.get("bytes").integer(0, BYTES_MAX)), number_text(each.get("gbytes_per_s").number()),
                       number_text(each.get("messages_per_s").number()), *times,
                       number_text(each.get("cpu_seconds_per_gbyte").number()), str(wrong)])


def flows_table(title, flows):
    rows = [[redact.text(flow.get("local").text(128)), redact.text(flow.get("remote").text(128)),
             number_text(flow.get("gbps").number()), number_text(flow.get("rtt_us").number()),
             str(flow.get("retransmits").integer())] for flow in flows.each()]
    return Table(title, ["local", "remote", "Gb/s", "RTT (us)", "retransmits"], rows, words=2)
