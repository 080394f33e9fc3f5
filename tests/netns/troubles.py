# SPDX-License-Identifier: Apache-2.0
"""troubles: cases of the test script faults that a job must survive, because nobody has died: hosts that come back,
firewalls that are reloaded, processes that get no CPU, neighbours that end. A rule that takes one of them for a death
is a false alarm."""

import os
import signal
import subprocess
import sys

import victim
from trial import FLOW_GBPS, NIC_GBPS, ONE_CHANNEL, survives
from victim import until

ALL_PORTS = f"{victim.PORTS[0]}-{victim.PORTS[-1]}"
HOSTS = (0, 1)


def trouble(name, what, damage, repair=None, hold_s=0.0, **more):
    """A case by the name trouble-NAME: `damage` for `hold_s`, then `repair`. How fast the job is then is no matter here."""
    survives(f"trouble-{name}", what, damage, repair, hold_s=hold_s, left=None, **more)


# ---- what is done ----

def fault(name, host, *words):
    return lambda cluster, _: cluster.fault(name, host, *words)


def on(host, *command):
    return lambda cluster, _: subprocess.run(cluster.on(host, *command), check=True, capture_output=True)


def both(act):
    """The same on both hosts."""
    def damage(cluster, job):
        for host in HOSTS:
            act(host)(cluster, job)
    return damage


def in_turn(*acts):
    def damage(cluster, job):
        for act in acts:
            act(cluster, job)
    return damage


def wait(seconds):
    return lambda _, job: job.run_for(seconds)


def again(times, *acts):
    return in_turn(*(acts * times))


def reset_all(cluster, _):
    """Where one host has no flow left, they were reset from the other end."""
    for host in HOSTS:
        cluster.may_fault("kill-flows", host, f"( dport >= :{victim.PORTS[0]} and dport <= :{victim.PORTS[-1]} )")


def signal_ranks(number, *hosts):
    def act(_, job):
        for host in hosts:
            for pid in job.pids(host):
                os.kill(pid, number)
    return act


def stop(*hosts):
    return signal_ranks(signal.SIGSTOP, *hosts)


def go_on(*hosts):
    return signal_ranks(signal.SIGCONT, *hosts)


def heal(host):
    return fault("heal", host)


heal_both = both(heal)


# ---- NICs, addresses and routes that come back ----

def away(seconds):
    return {"damage": fault("link-down", 1), "repair": fault("link-up", 1), "hold_s": seconds}


trouble("nic-0.5s", "The only NIC of a host down for 0.5 s.", **away(0.5))
trouble("nic-4s", "The same for 4 s, in which nothing but the host's kernel answers.", **away(4))
trouble("nic-flaps", "The only NIC of a host down and up, five times in 5 s.",
        again(5, fault("link-down", 1), wait(0.5), fault("link-up", 1), wait(0.5)))
trouble("nics-in-turn", "Two NICs as one device, now one of them down and now the other, for 1.5 s each.",
        again(2, *(act for nic in (0, 1) for act in (fault("link-down", 1, nic), wait(1.5), fault("link-up", 1, nic)))),
        env={"STRATUS_MERGE_NICS": "all"}, nics=2, nic_gbps=NIC_GBPS / 2)
# On a busy machine the repair itself has taken 5 s.
trouble("cut-5s", "All packets between the hosts lost for 5 s, a quarter of STRATUS_LINK_TIMEOUT.",
        fault("drop", 1, ALL_PORTS), heal(1), hold_s=5, env={"STRATUS_LINK_TIMEOUT": "20s"})
trouble("address", "The address of a host taken away for 2 s, with its route.", fault("address-down", 1),
        fault("address-up", 1), hold_s=2)
trouble("address-reset", "The same, and all flows reset meanwhile.", in_turn(fault("address-down", 1), reset_all),
        fault("address-up", 1), hold_s=2)
trouble("route", "The route of a host taken away for 2 s, and all flows reset meanwhile.",
        in_turn(fault("route-down", 1), reset_all), fault("route-up", 1), hold_s=2)
trouble("neighbours", "Both hosts forget their neighbours every 0.1 s for 3 s.",
        again(30, both(lambda host: on(host, "ip", "neigh", "flush", "dev", "eth0")), wait(0.1)))
trouble("mtu", "A host takes packets of up to 1300 bytes for 3 s; its peer does not know.",
        on(1, "ip", "link", "set", "eth0", "mtu", "1300"), on(1, "ip", "link", "set", "eth0", "mtu", "9000"), hold_s=3)

# ---- flows that are lost, with and without a way back ----

trouble("reset-all", "All flows of both hosts reset at once.", reset_all)
trouble("reset-each-second", "The same every second for 8 s, as by a middlebox.", again(8, reset_all, wait(1)))
trouble("reset-idle", "All flows reset of the direction in which nothing is sent.",
        lambda cluster, _: cluster.fault("kill-flows", 0, f"dport >= :{victim.PORTS[0]}"), flows=1,
        more=["-O", "broadcast", "-r", "1"])
trouble("forgotten", "1 of 8 flows forgotten by a firewall for ever.",
        lambda cluster, _: cluster.fault("drop", 1, cluster.flows(0)[0].local_port), hold_s=4, finds_a_way=True)
trouble("stuck", "1 of 8 flows at 1/1000 of its rate for 5 s.",
        lambda cluster, _: cluster.fault("slow", 0, 0, cluster.bucket(0, cluster.flows(0)[0]), FLOW_GBPS / 1000), hold_s=5)
trouble("lost-5", "5 % of all packets lost for 4 s.", fault("drop", 1, ALL_PORTS, 5), heal(1), hold_s=4)
trouble("lost-30", "30 % of all packets lost for 4 s.", fault("drop", 1, ALL_PORTS, 30), heal(1), hold_s=4)

# ---- firewalls: half of REFUSAL_GONE_NS (setup/limits.h), where no flow is left ----

trouble("refused", "A host refuses new connections for 8 s, while the others work.", fault("refuse", 1, ALL_PORTS), heal(1),
        hold_s=8, finds_a_way=True)
trouble("refused-stop", "Both hosts refuse new connections while a rank is stopped for 8 s.",
        in_turn(both(lambda host: fault("refuse", host, ALL_PORTS)), stop(1)), in_turn(go_on(1), heal_both), hold_s=8)
# A quarter of it: on a busy machine to break and to repair has taken 2 s more.
trouble("refused-reset", "All flows reset, and new ones refused by both hosts for 1 s.",
        in_turn(both(lambda host: fault("refuse", host, ALL_PORTS)), reset_all), heal_both, hold_s=1)
trouble("no-answer-reset", "All flows reset, and new ones not answered for 5 s.",
        in_turn(fault("drop", 1, ALL_PORTS), reset_all), heal(1), hold_s=5)
trouble("one-way", "What arrives at a host lost for 3 s, of all flows that there are or will be.",
        fault("deafen", 1, ALL_PORTS), heal(1), hold_s=3)
RESTART = in_turn(fault("refuse", 0, ALL_PORTS), fault("deafen", 0, ALL_PORTS))
trouble("firewall-restarts", "A host loses what arrives for 2 s, and refuses new connections meanwhile.", RESTART, heal(0),
        hold_s=2)
trouble("firewall-restarts-1-flow", "The same for a connection of 1 flow.", RESTART,
        heal(0), hold_s=2, env={"STRATUS_FLOWS": "1"}, flows=1)
trouble("unreachable-host", "A host answers all packets by ICMP 'no such host' for 2 s.",
        fault("unreachable", 1, ALL_PORTS), heal(1), hold_s=2)
trouble("unreachable-port", "All flows reset, and the next ones answered by ICMP 'no such port' for 2 s.",
        in_turn(fault("unreachable", 1, ALL_PORTS, "port"), reset_all), heal(1), hold_s=2)

# ---- processes without CPU ----

trouble("stop-3s", "A rank stopped for 3 s.", stop(1), go_on(1), hold_s=3)
trouble("stop-8s-reset", "A rank stopped for 8 s, and all flows reset meanwhile: its kernel takes new ones.",
        in_turn(stop(1), reset_all), go_on(1), hold_s=8)
trouble("stop-both", "All flows reset while both ranks are stopped for 5 s.", in_turn(stop(0, 1), reset_all), go_on(0, 1),
        hold_s=5)
trouble("no-cpu", "A host gets the CPU for 20 of 500 ms, for 8 s.",
        again(16, stop(1), wait(0.48), go_on(1), wait(0.02)))

CROWD = """
import resource, select, socket, sys, time
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
crowd = []
for port in list(map(int, sys.argv[2:])) * int(sys.argv[1]):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("10.77.0.2", port))
    crowd.append(one)
print(len(crowd), flush=True)
time.sleep(60)
"""


def crowd_at_the_door(cluster, job):
    """More strangers than a stopped rank has room for, who stay until it has gone on for a second."""
    stop(1)(cluster, job)
    command = cluster.on(0, sys.executable, "-c", CROWD, "5000", *map(str, cluster.ports(1)))  # 4096: its backlog
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crowd:
        crowd.stdout.readline()
        reset_all(cluster, job)
        job.run_for(4)
        go_on(1)(cluster, job)
        job.run_for(1)
        crowd.kill()


trouble("crowd", "A rank stopped for 4 s, its backlog full of strangers, and all flows reset.", crowd_at_the_door,
        env={"STRATUS_LINK_TIMEOUT": "60s"})


# ---- other jobs and ranks ----

def neighbour(cluster):
    """A second job on the same hosts and ports."""
    return victim.Job(cluster, ["--split-cpus", "--sizes", "1M"], ONE_CHANNEL)


def with_neighbour(job, end):
    """Runs a second job until it moves data, and does this to the pids of its ranks."""
    known = {pid for host in HOSTS for pid in job.pids(host)}
    with neighbour(job.cluster) as other:
        until("the second job moves data", 60, lambda: job.run_for(0) or len(other.completions()) > 3)
        end([pid for host in HOSTS for pid in job.pids(host) if pid not in known])
        other.wait(60)


def kill_neighbour(_, job):
    with_neighbour(job, lambda pids: os.kill(pids[1], signal.SIGKILL))


def restart_neighbour(_, job):
    for _ in range(3):
        with_neighbour(job, lambda pids: os.kill(pids[0], signal.SIGUSR1))


trouble("neighbour-killed", "A rank of a second job on the same hosts killed.", kill_neighbour)
trouble("neighbours-come-and-go", "A second job on the same hosts begins and ends, three times.", restart_neighbour)
trouble("ends-while-slow", "A job of 4 ranks ends while the way to the last one is 100 times slower.",
        lambda cluster, _: [cluster.fault("slow", 2, 0, cluster.bucket(2, flow), FLOW_GBPS / 100) for flow in cluster.flows(2)],
        more=["-O", "broadcast", "-r", "0"], hosts=4)


# ---- ways that are long, uneven or narrow ----

def over_wire(*numbers):
    """The two hosts are joined by wire.py instead of their switch."""
    def damage(cluster, job):
        switch = f"{cluster.name}-sw"
        for port in ("h0n0", "h1n0"):
            subprocess.run(["ip", "-n", switch, "link", "set", port, "nomaster"], check=True)
        script = os.path.join(os.path.dirname(victim.CLUSTER), "wire.py")
        command = ["nsenter", f"--net=/run/netns/{switch}", sys.executable, script, "h0n0", "h1n0", *map(str, numbers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as wire:
            try:
                wire.stdout.readline()
                job.run_for(5)
            finally:
                wire.kill()
        for port in ("h0n0", "h1n0"):
            subprocess.run(["ip", "-n", switch, "link", "set", port, "master", "br0"], check=True)
    return damage


def wire(name, what, *numbers, **more):
    trouble(name, what + " for 5 s.", over_wire(*numbers), one_subnet=True, **more)


wire("delay-300", "A round trip of 600 ms", 300, 0, 0, 0)
wire("jitter", "Packets 1 to 51 ms late, in order,", 1, 50, 0, 0)
wire("reordered", "3 % of the packets overtaken by those of 5 ms", 0, 0, 3, 0)
wire("repeated", "20 % of the packets arrive twice", 0, 0, 0, 20)


def nic_rate(host, gbps):
    rate = f"{gbps * 1000:g}mbit"
    return on(host, *f"tc class change dev eth0 parent 1: classid 1:fffe htb rate {rate} ceil {rate}"
              " burst 128k cburst 128k quantum 60000".split())


trouble("rate-1-percent", "The NIC of a host at 1/100 of its rate for 5 s.", nic_rate(1, NIC_GBPS / 100),
        nic_rate(1, NIC_GBPS), hold_s=5)
# tbf takes one packet of 64 KiB.
trouble("queue-of-1", "The NIC of a host has a queue of one packet for 4 s.",
        on(1, *f"tc qdisc add dev eth0 root tbf rate {NIC_GBPS}gbit burst 70k limit 70k".split()),
        on(1, *"tc qdisc del dev eth0 root".split()), hold_s=4, nic_gbps=0, flow_gbps=0)
