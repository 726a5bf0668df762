#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The DPDK fabric and control's neighbour code against a real kernel, over a veth pair between two
network namespaces that each case makes and removes. Needs root; else exit 77.

    system_veth.py PATH-OF-echo_main
"""
import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time

ECHO = sys.argv[1]
DEADLINE_S = 30
PORT = 7000
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
V4, V6 = "10.99.0.1", "fd99::1"


class Failed(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)


def run(*words, may_fail=False):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 and not may_fail:
        raise Failed(f"{' '.join(words)}: {done.stdout.strip()}")
    return done


@contextlib.contextmanager
def inside(namespace):
    """This process is in the namespace meanwhile: sockets made here belong there."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if LIBC.setns(there, CLONE_NEWNET) != 0:
            raise Failed("setns")
        yield
    finally:
        LIBC.setns(home, CLONE_NEWNET)
        os.close(there)
        os.close(home)


class Net:
    """Two namespaces joined by a veth pair: d0 on the node's side without addresses, c0 the client's."""

    def __init__(self, checksums=False, mtu=1500):
        self.node, self.client = f"spotlane-n{os.getpid()}", f"spotlane-c{os.getpid()}"
        self.process = None
        try:
            for name in (self.node, self.client):
                run("ip", "netns", "add", name)
            run("ip", "link", "add", "d0", "netns", self.node, "mtu", str(mtu), "type", "veth",
                "peer", "name", "c0", "netns", self.client, "mtu", str(mtu))
            run("ip", "netns", "exec", self.node, "sysctl", "-qw", "net.ipv6.conf.d0.disable_ipv6=1")
            run("ip", "-n", self.node, "link", "set", "d0", "up")
            run("ip", "-n", self.client, "link", "set", "lo", "up")
            run("ip", "-n", self.client, "link", "set", "c0", "up")
            if not checksums:
                run("ip", "netns", "exec", self.client, "ethtool", "-K", "c0", "tx", "off")
        except Failed:
            self.close()
            raise

    def addresses(self, device="c0"):
        run("ip", "-n", self.client, "addr", "add", "10.99.0.2/24", "dev", device)
        run("ip", "-n", self.client, "addr", "add", "fd99::2/64", "dev", device, "nodad")

    def start(self, *more):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.node, ECHO, "--iface", "d0", "--address", V4 + "/24",
             "--address", V6 + "/64", "--port", str(PORT), "--file-prefix",
             f"spotlane-echo-{os.getpid()}", *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.line()
        check(line.startswith("ready"), f"not ready: {line} {self.errors()}")

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        check(ready, "no output in time")
        return self.process.stdout.readline().decode()

    def errors(self):
        return self.process.stderr.read().decode() if self.process.poll() is not None else ""

    def stop(self):
        """Ends the node; its counters."""
        self.process.terminate()
        counters = json.loads(self.line())
        check(self.process.wait(DEADLINE_S) == 0, "the node did not end cleanly")
        self.process = None
        return counters

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for name in (self.node, self.client):
            run("ip", "netns", "del", name, may_fail=True)

    def udp(self, family):
        with inside(self.client):
            s = socket.socket(family, socket.SOCK_DGRAM)
        s.settimeout(DEADLINE_S)
        return s

    def packets(self, device="c0"):
        with inside(self.client):
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            s.bind((device, 0))
        s.settimeout(DEADLINE_S)
        return s


def echo_sizes(net, sizes):
    for family, address in ((socket.AF_INET, V4), (socket.AF_INET6, V6)):
        with net.udp(family) as s:
            for size in sizes:
                data = bytes((i * 7 + size) & 255 for i in range(size))
                s.sendto(data, (address, PORT))
                got, source = s.recvfrom(65536)
                check(got == data, f"{address}: {size} bytes came back changed")
                check(source[:2] == (address, PORT), f"came from {source}")


def internet_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ping(net, family, address, count, size):
    v4 = family == socket.AF_INET
    with inside(net.client):
        s = socket.socket(family, socket.SOCK_RAW,
                          socket.IPPROTO_ICMP if v4 else socket.IPPROTO_ICMPV6)
    s.settimeout(DEADLINE_S)
    with s:
        for sequence in range(count):
            message = struct.pack("!BBHHH", 8 if v4 else 128, 0, 0, 0x1234, sequence) + bytes(size)
            if v4:  # the kernel fills in ICMPv6's checksum itself
                message = message[:2] + struct.pack("!H", internet_sum(message)) + message[4:]
            s.sendto(message, (address, 0))
            while True:
                got, source = s.recvfrom(65536)
                got = got[(got[0] & 15) * 4:] if v4 else got
                if got[0] == (0 if v4 else 129) and source[0] == address:
                    break
            check(got[4:] == message[4:], "the echo differs")
            check(not v4 or internet_sum(got) == 0, "the echo's checksum is wrong")


def x__the_kernel_pings_us(net):
    net.addresses()
    net.start()
    ping(net, socket.AF_INET, V4, 5, 56)
    ping(net, socket.AF_INET6, V6, 5, 56)
    ping(net, socket.AF_INET, V4, 1, 1400)
    ping(net, socket.AF_INET6, V6, 1, 1400)
    local = [line.split()[2] for line in
             run("ip", "-n", net.client, "neigh").stdout.splitlines() if line.startswith(V4 + " ")]
    check(local, "the kernel has no neighbour entry for us")
    counters = net.stop()
    check(counters["arp_answered"] >= 1 and counters["nd_answered"] >= 1, str(counters))
    check(counters["echo_answered"] == 12, str(counters))


def x__datagrams_are_echoed(net):
    net.addresses()
    net.start()
    echo_sizes(net, [*range(0, 40), 63, 64, 65, 500, 1000, 1451, 1452])
    counters = net.stop()
    check(counters["rx_frames"] == counters["tx_frames"] == 2 * 47, str(counters))
    check(counters["rx_malformed"] == 0, str(counters))


def x__addresses_are_announced(net):
    with net.packets() as s:
        net.start()
        arp = advertisement = 0
        end = time.monotonic() + DEADLINE_S
        while (arp < 2 or advertisement < 2) and time.monotonic() < end:
            frame = s.recv(2048)
            if frame[12:14] == b"\x08\x06" and frame[28:32] == frame[38:42] == \
                    socket.inet_aton(V4) and frame[:6] == b"\xff" * 6:
                arp += 1
            if frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 136 and \
                    frame[62:78] == socket.inet_pton(socket.AF_INET6, V6):
                advertisement += 1
        check(arp >= 2 and advertisement >= 2, f"{arp} gratuitous ARP, {advertisement} NA")
    net.stop()


def x__a_vlan_tag_is_spoken(net):
    if run("ip", "-n", net.client, "link", "add", "link", "c0", "name", "c0.42", "type", "vlan",
           "id", "42", may_fail=True).returncode == 0:
        run("ip", "-n", net.client, "link", "set", "c0.42", "up")
        run("ip", "netns", "exec", net.client, "ethtool", "-K", "c0.42", "tx", "off", may_fail=True)
        net.addresses("c0.42")
        net.start("--vlan", "42")
        ping(net, socket.AF_INET, V4, 2, 56)
        ping(net, socket.AF_INET6, V6, 2, 56)
        echo_sizes(net, [0, 1, 64, 1452])
        net.stop()
        return
    # A kernel without VLAN support: the tag by hand, in an ARP request.
    net.start("--vlan", "42")
    with net.packets() as s:
        mac = s.getsockname()[4]
        body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + socket.inet_aton("10.99.0.2") + \
            bytes(6) + socket.inet_aton(V4)
        s.send(b"\xff" * 6 + mac + b"\x81\x00\x00\x2a\x08\x06" + body)
        s.send(b"\xff" * 6 + mac + b"\x08\x06" + body)
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            frame = s.recv(2048)
            if frame[:6] == mac:
                break
        check(frame[:6] == mac, "no answer to a tagged question")
    counters = net.stop()
    check(counters["arp_answered"] == 1, str(counters))


def P3__unfinished_checksums_are_counted_with_a_hint(net):
    net.addresses()
    net.start()
    for family, address in ((socket.AF_INET, V4), (socket.AF_INET6, V6)):
        with net.udp(family) as s:
            for _ in range(10):
                s.sendto(b"hello", (address, PORT))
    ping(net, socket.AF_INET, V4, 1, 8)  # all of them are behind us then
    ping(net, socket.AF_INET6, V6, 1, 8)
    counters = net.stop()
    check(counters["rx_frames"] == 0, str(counters))
    check(counters["rx_checksum_unfinished"] == counters["rx_malformed"] == 20, str(counters))


def P3__what_the_kernel_reassembled_is_not_lost_silently(net):
    net.addresses()
    net.start()
    with net.udp(socket.AF_INET) as s:
        s.sendto(bytes(100), (V4, PORT))
        s.recv(2000)
        s.sendto(bytes(1800), (V4, PORT))  # two fragments; PACKET_FANOUT hands over one frame
        s.sendto(bytes(4000), (V4, PORT))  # reassembled beyond the ring's frame: arrives cut
        s.sendto(bytes(100), (V4, PORT))
        s.recv(2000)
    counters = net.stop()
    check(counters["tx_frames"] == 2, str(counters))
    # Each is somewhere: as too large to answer, as a fragment, or as cut.
    lost = counters["rx_frames"] - 2 + counters["rx_malformed"]
    check(lost >= 2, str(counters))


def x__jumbo_frames(net):
    net.addresses()
    net.start("--mtu", "9000")
    echo_sizes(net, [0, 1473, 4000, 8952])
    net.stop()


def x__a_gateway_is_found(net):
    net.addresses()
    net.start("--gateway", "10.99.0.2", "--gateway", "fd99::2")
    run("ip", "-n", net.client, "addr", "add", "10.77.0.5/32", "dev", "lo")
    with net.udp(socket.AF_INET) as s:
        s.bind(("10.77.0.5", 0))
        s.sendto(b"from behind the gateway", (V4, PORT))
        check(s.recv(100) == b"from behind the gateway", "changed")
    counters = net.stop()
    check(counters["asked"] >= 2 and counters["learned"] >= 2, str(counters))


def x__two_queues_share_the_clients(net):
    net.addresses()
    net.start("--workers", "2")
    for _ in range(64):
        with net.udp(socket.AF_INET) as s:
            s.sendto(b"who", (V4, PORT))
            check(s.recv(100) == b"who", "changed")
    ping(net, socket.AF_INET, V4, 8, 56)  # echo requests may come in on either
    ping(net, socket.AF_INET6, V6, 2, 56)
    counters = net.stop()
    check(len(counters["queues"]) == 2 and min(counters["queues"]) > 0, str(counters))
    check(counters["rx_frames"] == counters["tx_frames"] == 64, str(counters))


# Takes the fan-out id that the driver will choose, for another device, then becomes the node.
COLLIDE = """
import os, socket, sys
index = socket.if_nametoindex("d0")
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("lo", 0))
s.setsockopt(263, 18, (os.getpid() ^ index) & 0xffff)
os.set_inheritable(s.fileno(), True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def FC127__a_fan_out_collision_is_explained(net):
    run("ip", "-n", net.node, "link", "set", "lo", "up")
    done = run("ip", "netns", "exec", net.node, sys.executable, "-c", COLLIDE, ECHO, "--iface", "d0",
               "--address", V4 + "/24", "--file-prefix", f"spotlane-f{os.getpid()}", may_fail=True)
    last = done.stdout.strip().splitlines()[-1]
    check(done.returncode == 1, f"exit code {done.returncode}: {last}")
    check("did not come up" in last and "PACKET_FANOUT" in last, last)


def x__a_deleted_interface_is_survived(net):
    net.addresses()
    net.start()
    echo_sizes(net, [64])
    run("ip", "-n", net.client, "link", "del", "c0")
    counters = net.stop()
    check(counters["rx_frames"] == 2, str(counters))


def FC127__a_missing_interface_is_explained(net):
    done = run("ip", "netns", "exec", net.node, ECHO, "--iface", "nothere", "--address",
               V4 + "/24", may_fail=True)
    last = done.stdout.strip().splitlines()[-1]
    check(done.returncode == 1, f"exit code {done.returncode}")
    check("net_af_packet0" in last and "did not come up" in last, last)


def FC122__missing_privileges_are_explained(net):
    done = subprocess.run(["ip", "netns", "exec", net.node, "setpriv", "--reuid", "65534",
                           "--regid", "65534", "--clear-groups", ECHO, "--iface", "d0",
                           "--address", V4 + "/24", "--file-prefix", f"spotlane-u{os.getpid()}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = done.stdout.strip().splitlines()[-1]
    if "Permission denied" in last or "exec" in last:
        return  # the build directory is closed to others: nothing to see
    check(done.returncode == 1, f"exit code {done.returncode}")
    check("CAP_NET_RAW" in last, last)


def main():
    if os.geteuid() != 0 or run("ip", "netns", "add", f"spotlane-p{os.getpid()}",
                                may_fail=True).returncode != 0:
        print("needs root and network namespaces: skipped")
        sys.exit(77)
    run("ip", "netns", "del", f"spotlane-p{os.getpid()}")
    if not any(os.access(os.path.join(d, "ethtool"), os.X_OK)
               for d in os.environ.get("PATH", "").split(":") + ["/usr/sbin", "/sbin"]):
        print("needs ethtool: skipped")
        sys.exit(77)
    cases = [
        (x__the_kernel_pings_us, {}), (x__datagrams_are_echoed, {}),
        (x__addresses_are_announced, {}), (x__a_vlan_tag_is_spoken, {}),
        (P3__unfinished_checksums_are_counted_with_a_hint, {"checksums": True}),
        (P3__what_the_kernel_reassembled_is_not_lost_silently, {}),
        (x__jumbo_frames, {"mtu": 9000}), (x__a_gateway_is_found, {}),
        (x__two_queues_share_the_clients, {}), (FC127__a_fan_out_collision_is_explained, {}),
        (x__a_deleted_interface_is_survived, {}), (FC127__a_missing_interface_is_explained, {}),
        (FC122__missing_privileges_are_explained, {}),
    ]
    passed = failed = 0
    for case, options in cases:
        net = None
        try:
            net = Net(**options)
            case(net)
            print(f"ok {case.__name__}", flush=True)
            passed += 1
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"not ok {case.__name__} {type(error).__name__}: {error}", flush=True)
            failed += 1
        finally:
            if net is not None:
                net.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
