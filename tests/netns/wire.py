#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire: a cable between two NICs of one namespace, in the place of a switch. What comes in at one goes out at the
other: later, in another order, or twice. For kernels that have no netem.

usage: wire.py NIC NIC DELAY_MS JITTER_MS REORDERED_PERCENT REPEATED_PERCENT

  DELAY_MS           each packet is that late
  JITTER_MS          and up to so much more, in order
  REORDERED_PERCENT  of the packets are REORDERED_MS late beyond that, and overtaken
  REPEATED_PERCENT   of the packets come twice

Packets are as the kernel hands them over, up to 64 KiB. It runs until it is killed.
"""

import heapq
import random
import select
import socket
import sys
import time

REORDERED_MS = 5  # a hundred packets of 64 KiB at 10 Gb/s
PACKET_BYTES = 1 << 17
# Of <linux/if_packet.h>. A packet has a header that says how it is to be cut, and where its checksum is missing.
PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 15, 23, 3
SOL_PACKET, SO_RCVBUFFORCE = 263, 33
QUEUE_BYTES = 64 << 20  # more than TCP has in flight in 8 flows of 6 MB, which is the kernel's limit of a window


def open_nic(name):
    nic = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    nic.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    nic.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    nic.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
    nic.bind((name, 0))
    nic.setblocking(False)
    return nic


class Direction:
    """From one NIC to the other."""

    def __init__(self, source, target, delay_ms, jitter_ms, reordered_percent, repeated_percent):
        self.source, self.target = source, target
        self.delay_s, self.jitter_s = delay_ms / 1e3, jitter_ms / 1e3
        self.reordered, self.repeated = reordered_percent / 100, repeated_percent / 100
        self.waiting, self.count, self.last = [], 0, 0.0  # (when, number, packet); the latest that is in order

    def take(self, now, lot):
        try:
            packet = self.source.recv(PACKET_BYTES)
        except BlockingIOError:
            return
        self.last = max(self.last, now + self.delay_s + lot.uniform(0, self.jitter_s))
        due = self.last + (REORDERED_MS / 1e3 if lot.random() < self.reordered else 0)
        for _ in range(2 if lot.random() < self.repeated else 1):
            self.count += 1
            heapq.heappush(self.waiting, (due, self.count, packet))

    def send(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            try:
                self.target.send(heapq.heappop(self.waiting)[2])
            except OSError:
                pass  # its queue is full, or it is down: the packet is lost

    def wait_s(self, now):
        return max(0.0, self.waiting[0][0] - now) if self.waiting else 1.0


def main():
    first, second = map(open_nic, sys.argv[1:3])
    numbers = list(map(float, sys.argv[3:7]))
    directions = {first: Direction(first, second, *numbers), second: Direction(second, first, *numbers)}
    lot = random.Random(1)
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        readable, _, _ = select.select(directions, [], [], min(one.wait_s(now) for one in directions.values()))
        now = time.monotonic()
        for nic in readable:
            directions[nic].take(now, lot)
        for direction in directions.values():
            direction.send(now)


if __name__ == "__main__":
    main()
