# SPDX-License-Identifier: Apache-2.0
"""The tools that measure: coll, stratus perf, iperf3. Each returns {metric: number}.

Both ends of every measurement are kept to CPUs of their own in the same way, whatever moves the data."""
import json
import os
import secrets
import shlex
import tempfile

from benchmark.run import ROOT, Failure, cpus_of_host, tail

NCCL = "build/fake_cuda/lib/sid"
LIBRARIES = f"build/lib:{NCCL}:build/fake_cuda/lib"
SOCKET_PLUGIN = f"{NCCL}/libnccl-net-socket.so"
SECRET = {"STRATUS_SECRET": secrets.token_hex(16)}  # which both ends of perf need
TRUNCATED = "truncated"
NOTHING_DONE = "not one round trip was done in time"
TRIES = 4

# What tells the transports apart, for stock NCCL and for perf, which drives a plugin file.
TRANSPORTS = {
    "stratus": ("stratus", {}),
    "socket": ("socket", {}),
    "socket-2x4": ("socket", {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "4"}),
    "socket-2x8": ("socket", {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "8"}),
}


def library_path():
    return ":".join(os.path.join(ROOT, each) for each in LIBRARIES.split(":"))


def environment(transport, extra):
    return {"LD_LIBRARY_PATH": library_path(), "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth",
            **TRANSPORTS[transport][1], **(extra or {})}


def words(variables):
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


class Bench:
    """What a measurement is given: runner, cluster, how long, and a place to note what was run."""

    def __init__(self, runner, settings, cluster):
        self.runner = runner
        self.settings = settings
        self.cluster = cluster
        self.command = None
        self.retries = 0

    def retrying(self, measure):
        """NCCL's Socket of 2.27.3 and later may lose a header whose payload is late and then ends with
        "message truncated"; a thread that yields may get no processor for the whole of a short
        measurement. These are tried again, and counted."""
        for attempt in range(TRIES):
            try:
                return measure()
            except Failure as failure:
                is_known = TRUNCATED in str(failure) or NOTHING_DONE in str(failure)
                if not is_known or attempt == TRIES - 1:
                    raise
                self.retries += 1
        return None

    # ---- stock NCCL ----

    def coll(self, transport, arguments, extra=None):
        """{"rows": {bytes: {"time_us", "busbw_gbs"}}, "wrong"}; the mean of out of place and in place."""
        return self.retrying(lambda: self.coll_once(transport, arguments, extra))

    def coll_once(self, transport, arguments, extra):
        return coll_metrics(json.loads(self.coll_json(transport, arguments, extra)))

    def coll_json(self, transport, arguments, extra=None, hosts=None):
        """What coll writes with --json, as text; on `hosts`, or on all of the cluster."""
        plugin, _ = TRANSPORTS[transport]
        variables = {**environment(transport, extra),
                     "NCCL_NET_PLUGIN": "none" if plugin == "socket" else plugin,
                     "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
        hosts = hosts or self.runner.run(["tests/netns/cluster", "hosts", self.cluster]).strip()
        with tempfile.TemporaryDirectory() as scratch:
            variables["NCCL_DEBUG_FILE"] = f"{scratch}/nccl.%h.%p"
            argv = words(variables) + ["build/tests/coll/coll", "--hosts", hosts, "--split-cpus", *arguments,
                                       "--json", f"{scratch}/out.json"]
            self.command = shlex.join(argv)
            try:
                self.runner.run(argv, limit_s=self.settings.limit_s)
            except Failure as failure:
                raise Failure(f"{failure} {self.nccl_warnings(scratch)}") from None
            self.check_transport(scratch, "Socket" if plugin == "socket" else plugin)
            with open(f"{scratch}/out.json", encoding="utf-8") as file:
                return file.read()

    def nccl_logs(self, scratch):
        for name in os.listdir(scratch):
            if name.startswith("nccl."):
                with open(os.path.join(scratch, name), encoding="utf-8", errors="replace") as file:
                    yield file.read()

    def nccl_warnings(self, scratch):
        found = [line for text in self.nccl_logs(scratch) for line in text.splitlines() if "WARN" in line]
        return tail("\n".join(found), 2)

    def check_transport(self, scratch, wanted):
        """NCCL falls back to its own transport without an error when a plugin does not load."""
        texts = list(self.nccl_logs(scratch))
        if not texts or not all(f"using network {wanted}".lower() in text.lower() for text in texts):
            raise Failure(f"NCCL did not use {wanted}")

    # ---- one plugin, driven as NCCL drives it ----

    def perf(self, transport, arguments, extra=None, meanwhile=None):
        """{"gbps", "messages_per_s", ...} of the last size, and the same by size in "sizes".
        `meanwhile(self)` is called when both ends run."""
        return self.retrying(lambda: self.perf_once(transport, arguments, extra, meanwhile))

    def perf_once(self, transport, arguments, extra, meanwhile):
        options = list(arguments)
        variables = {**environment(transport, extra), "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/stderr"}
        if TRANSPORTS[transport][0] == "socket":
            options += ["--plugin", os.path.join(ROOT, SOCKET_PLUGIN)]
        if "--time" not in options:
            options += ["--time", self.settings.time_text]
        if "--warmup" not in options:
            options += ["--warmup", self.settings.warmup_text]
        if self.settings.is_checked:
            options += ["--check"]
        tool = words(variables) + ["build/bin/stratus", "perf"]
        plugin = options[options.index("--plugin"):][:2] if "--plugin" in options else []
        server = self.at_host(1, tool + ["--listen", *plugin])
        client = self.at_host(0, tool + ["10.77.0.2", *options, "--json"])
        self.command = f"{shlex.join(server)} & {shlex.join(client)}"
        return perf_metrics(json.loads(self.run_pair(server, client, "sport = :29591", meanwhile)))

    def at_host(self, host, argv):
        cpus = ",".join(str(cpu) for cpu in cpus_of_host(host, 2))
        return self.runner.on_host(self.cluster, host, ["taskset", "-c", cpus, *argv])

    def run_pair(self, server_argv, client_argv, listening, meanwhile=None):
        """The client's output. The server is ended when the client has."""
        server = self.runner.start(server_argv, SECRET)
        try:
            self.runner.until(lambda: self.listens(server, listening), 10, "the server's listening")
            client = self.runner.start(client_argv, SECRET)
            try:
                if meanwhile:
                    meanwhile(self)
                status, out, err = self.runner.finish(client, self.settings.limit_s)
            finally:
                self.runner.kill(client)
            if status != 0:
                self.runner.kill(server)
                raise Failure(f"exit status {status}: {tail(err)} {tail(server.communicate()[1])}")
            return out
        finally:
            self.runner.kill(server)
            server.communicate()

    def listens(self, server, port_filter):
        if server.poll() is not None:
            raise Failure(f"the server ended: {tail(server.communicate()[1])}")
        return self.runner.run(self.runner.on_host(self.cluster, 1, ["ss", "-Hltn", port_filter])).strip() != ""

    # ---- a job that is broken ----

    def fault(self, name, extra=None):
        """{"stall_s", "back", "wrong", ...} of one case of tests/netns/faults, which makes its own cluster."""
        with tempfile.TemporaryDirectory() as scratch:
            self.command = f"tests/netns/faults --quick --json {scratch}/out.json {name}"
            status, out, err = self.runner.finish(
                self.runner.start(shlex.split(self.command), extra), self.settings.limit_s)
            try:
                with open(f"{scratch}/out.json", encoding="utf-8") as file:
                    cases = json.load(file)["cases"]
            except OSError:
                raise Failure(f"faults: exit status {status}: {tail(err or out)}") from None
        found = next(case for case in cases if case["case"] == name)
        if not found["ok"]:
            raise Failure(found["problem"])
        return {"stall_s": found["stall_s"], "before_gbs": found["before_gbs"], "after_gbs": found["after_gbs"],
                "back": found["after_gbs"] / found["before_gbs"], "wrong": found["wrong"]}

    # ---- bounds ----

    def iperf3(self, flows):
        seconds = max(1, round(self.settings.seconds))
        server = self.at_host(1, ["iperf3", "-s", "-1"])
        client = self.at_host(0, ["iperf3", "-c", "10.77.0.2", "-P", str(flows), "-t", str(seconds), "-J"])
        self.command = f"{shlex.join(server)} & {shlex.join(client)}"
        return iperf3_metrics(json.loads(self.run_pair(server, client, "sport = :5201")))


def iperf3_metrics(document):
    """With -J an error is a member, and iperf3 3.12 ends with status 0."""
    if "error" in document:
        raise Failure(f"iperf3: {document['error']}")
    return {"gbps": document["end"]["sum_received"]["bits_per_second"] / 1e9}


def coll_metrics(document):
    rows = {}
    for row in document["results"]:
        places = [row[place] for place in ("out_of_place", "in_place") if row[place]]
        rows[row["size"]] = {
            "time_us": sum(place["time"] for place in places) / len(places),
            "busbw_gbs": sum(place["bus_bw"] for place in places) / len(places)}
    largest = rows[max(rows)]
    return {**largest, "rows": rows, "wrong": document["out_of_bounds"], "nccl": document["nccl"]}


def perf_metrics(document):
    sizes = {}
    for each in document["rounds"]:
        sides = (each["client"], each["server"])
        sizes[each["bytes"]] = {
            "gbps": each["gbytes_per_s"] * 8, "gbytes_per_s": each["gbytes_per_s"],
            "messages_per_s": each["messages_per_s"],
            "cpu_s_per_gb": each["cpu_seconds_per_gbyte"],
            "cpu_s_per_gb_without_driver": each["cpu_seconds_per_gbyte_without_driver"],
            "threads": max(side["threads"] for side in sides)}
        if document["test"] == "latency" and not each["half_round_trip_us"]:
            raise Failure(NOTHING_DONE)
        if each["half_round_trip_us"]:
            trips = each["half_round_trip_us"]
            sizes[each["bytes"]].update(half_trip_us=trips["p50"], mean_us=trips["mean"], rare_us=trips["p99.9"],
                                        longest_us=trips["max"])
    last = sizes[document["rounds"][-1]["bytes"]]
    found = {**last, "sizes": sizes, "wrong": sum(each["wrong_messages"] for each in document["rounds"])}
    if document["idle"]:
        found["idle_cpu_percent"] = sum(
            100 * side["cpu_seconds"] / side["seconds"] for side in document["idle"].values())
    return found
