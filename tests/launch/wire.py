#!/usr/bin/env python3
"""A bad cable: passes frames between two network devices with a delay, and loses some.

usage: wire.py DEVICE DEVICE DELAY_MS LOSS SEED
"""
import collections
import random
import select
import socket
import sys
import time

ETH_P_ALL, SOL_PACKET, PACKET_VNET_HDR, PACKET_OUTGOING = 3, 263, 15, 4


def open_device(name):
    # With the header, checksums and segments that the sender left to its device arrive complete.
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    device.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    device.bind((name, 0))
    return device


def main():
    devices = [open_device(name) for name in sys.argv[1:3]]
    delay, loss, rng = float(sys.argv[3]) / 1000, float(sys.argv[4]), random.Random(int(sys.argv[5]))
    passing = collections.deque()  # (time of arrival, device, frame), in order because the delay is constant
    print("ready", flush=True)
    while True:
        wait = max(0, passing[0][0] - time.monotonic()) if passing else None
        for device in select.select(devices, [], [], wait)[0]:
            frame, address = device.recvfrom(1 << 17)
            if address[2] != PACKET_OUTGOING and rng.random() >= loss:
                passing.append((time.monotonic() + delay, devices[device is devices[0]], frame))
        while passing and passing[0][0] <= time.monotonic():
            _, device, frame = passing.popleft()
            device.send(frame)


main()
