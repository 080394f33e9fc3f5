# SPDX-License-Identifier: Apache-2.0
"""The tools that measure: coll, stratus perf, iperf3. Each returns {metric: number} of the last size, and of several sizes
"METRIC SIZE" as well.

Both ends of every measurement are kept to CPUs of their own in the same way, whatever moves the data."""
import json
import os
import secrets
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


def size_text(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


class Bench:
    """What a measurement is given: runner, cluster, how long it takes, in seconds, and may take."""

    def __init__(self, runner, cluster, limit_s=120, seconds=1.5, is_quick=False, is_checked=False):
        self.runner, self.cluster, self.limit_s = runner, cluster, limit_s
        self.seconds, self.is_quick, self.is_checked = seconds, is_quick, is_checked

    def pick(self, full, quick):
        return quick if self.is_quick else full

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
                self.runner.retries += 1
        return None

    # ---- stock NCCL ----

    def coll(self, transport, arguments, extra=None):
        """The mean of out of place and in place; "rows" has each size by its bytes."""
        return coll_metrics(self.coll_json(transport, arguments, extra))

    def coll_json(self, transport, arguments, extra=None, hosts=None):
        """What coll writes with --json; on `hosts`, or on all of the cluster."""
        return self.retrying(lambda: self.coll_once(transport, arguments, extra, hosts))

    def coll_once(self, transport, arguments, extra, hosts):
        plugin, _ = TRANSPORTS[transport]
        variables = {**environment(transport, extra),
                     "NCCL_NET_PLUGIN": "none" if plugin == "socket" else plugin,
                     "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
        hosts = hosts or self.runner.run(["tests/netns/cluster", "hosts", self.cluster]).strip()
        with tempfile.TemporaryDirectory() as scratch:
            variables["NCCL_DEBUG_FILE"] = f"{scratch}/nccl.%h.%p"
            argv = words(variables) + ["build/tests/coll/coll", "--hosts", hosts, "--split-cpus", *arguments,
                                       "--json", f"{scratch}/out.json"]
            try:
                self.runner.run(argv, limit_s=self.limit_s)
            except Failure as failure:
                raise Failure(f"{failure} {self.nccl_warnings(scratch)}") from None
            self.check_transport(scratch, "Socket" if plugin == "socket" else plugin)
            with open(f"{scratch}/out.json", encoding="utf-8") as file:
                return json.load(file)

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
        """`meanwhile(self)` is called when both ends run."""
        return self.retrying(lambda: self.perf_once(transport, arguments, extra, meanwhile))

    def perf_once(self, transport, arguments, extra, meanwhile):
        plugin = ["--plugin", os.path.join(ROOT, SOCKET_PLUGIN)] if TRANSPORTS[transport][0] == "socket" else []
        options = [*arguments, *plugin]
        variables = {**environment(transport, extra), "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/stderr"}
        if "--time" not in options:
            options += ["--time", f"{round(self.seconds * 1000)}ms"]
        if "--warmup" not in options:
            options += ["--warmup", f"{round(min(0.4, self.seconds / 2) * 1000)}ms"]
        if self.is_checked:
            options += ["--check"]
        tool = words(variables) + ["build/bin/stratus", "perf"]
        server = self.at_host(1, tool + ["--listen", *plugin])
        client = self.at_host(0, tool + ["10.77.0.2", *options, "--json"])
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
                status, out, err = self.runner.finish(client, self.limit_s)
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

    # ---- bounds ----

    def iperf3(self, flows):
        seconds = max(1, round(self.seconds))
        server = self.at_host(1, ["iperf3", "-s", "-1"])
        client = self.at_host(0, ["iperf3", "-c", "10.77.0.2", "-P", str(flows), "-t", str(seconds), "-J"])
        return iperf3_metrics(json.loads(self.run_pair(server, client, "sport = :5201")))


def iperf3_metrics(document):
    """With -J an error is a member, and iperf3 3.12 ends with status 0."""
    if "error" in document:
        raise Failure(f"iperf3: {document['error']}")
    return {"gbps": document["end"]["sum_received"]["bits_per_second"] / 1e9}


def by_size(sizes):
    """Of the last size, and of each by its name. `sizes`: {bytes: metrics}."""
    found = dict(list(sizes.values())[-1])
    for size, metrics in sizes.items():
        found.update({f"{metric} {size_text(size)}": value for metric, value in metrics.items()})
    return found


def coll_metrics(document):
    rows = {}
    for row in document["results"]:
        places = [row[place] for place in ("out_of_place", "in_place") if row[place]]
        rows[row["size"]] = {
            "time_us": sum(place["time"] for place in places) / len(places),
            "busbw_gbs": sum(place["bus_bw"] for place in places) / len(places)}
    return {**by_size(rows), "rows": rows, "wrong": document["out_of_bounds"], "nccl": document["nccl"]}


def perf_metrics(document):
    sizes = {}
    for each in document["rounds"]:
        metrics = sizes[each["bytes"]] = {
            "gbps": each["gbytes_per_s"] * 8, "gbytes_per_s": each["gbytes_per_s"], "messages_per_s": each["messages_per_s"],
            "cpu_s_per_gb": each["cpu_seconds_per_gbyte"], "threads": max(each[side]["threads"] for side in ("client", "server"))}
        trips = each["half_round_trip_us"]
        if trips:
            metrics.update(half_trip_us=trips["p50"], mean_us=trips["mean"], rare_us=trips["p99.9"], longest_us=trips["max"])
        elif document["test"] == "latency":
            raise Failure(NOTHING_DONE)
    found = {**by_size(sizes), "wrong": sum(each["wrong_messages"] for each in document["rounds"])}
    if document["idle"]:
        found["idle_cpu_percent"] = sum(100 * side["cpu_seconds"] / side["seconds"] for side in document["idle"].values())
    return found
