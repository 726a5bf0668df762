#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Spotlane client in Python's standard library, written from docs/WIRE.md alone.

    spot.py --node HOST:PORT request|send ID [PAYLOAD] [--intent TYPE] [--type N] [--timeout MS]

PAYLOAD is text, or - for standard input. Exit code 0 = the result is OK.
"""
import argparse
import contextlib
import hashlib
import secrets
import socket
import struct
import sys
import time

# gen:constants
VERSION, HEADER_BYTES = 1, 136
HEADER_FORMAT = "<BBBBBBBBQQQQQQQQQQIHHIIIHHBB6s16s"
FIELDS = """version suite_phase family flags kind reason accepted id_bytes session counter cookie
    spot_key_lo spot_key_hi operation_scope operation_id owner_node owner_lease
    object_generation spot_type message_type content_type budget_us total_bytes segment_offset
    segment_bytes segment_unit ingress_worker home_worker reserved tag""".split()
SEND, REQUEST, INTENT_SEND, INTENT_REQUEST, CONTROL = 1, 2, 3, 4, 5
PUSH, REPLY, ACK, HELLO, CHALLENGE, FORWARD_SEND, FORWARD_REQUEST, FORWARD_REPLY = 6, 7, 8, 9, 10, 12, 13, 14
FLAG_PRESSURE, FLAG_EXPLAIN, FLAG_SEGMENTED, FLAG_ACK_NOW = 1, 2, 4, 8
CONTENT_BYTES, CONTENT_JSON, CONTENT_TEXT, CONTENT_REFUSAL, CONTENT_ACK = 0, 1, 2, 3, 4
KINDS = dict(enumerate("""
    OK NotFound AlreadyExists TypeMismatch NotConfigured Rejected StaleRoute Unavailable
    CapacityExceeded DeadlineExceeded Cancelled ShuttingDown ProtocolError InvalidOperation
    DataLost InternalFailure NotHomed SnapshotConflict HeadMismatch LifecycleConflict Denied
    Unauthenticated Unsupported""".split(), 1))
REASONS = {**dict(enumerate("""
    None ProcessInbound Parked ApplicationLaneCount ApplicationLaneBytes LifecycleLaneCount
    LifecycleLaneBytes SchedulerQueue WorkerQueue Batch ActivationCeiling PendingActivations
    PendingResolves Placement Reassembly""".split(), 0)), **dict(enumerate("""
    TooLarge KeyCollision GenerationExhausted StoreUnreachable RcuStalled LeaseLost OwnerUnusable
    Closing Declined FactoryFailed HandlerFault NoReply UnknownType UnknownMessage BadPayload
    IdMissing EntryIdShape SelfAwait CookieRequired GenerationMismatch OutOfMemory HasMembers
    WrongOwner""".split(), 32))}
# end:constants
ACCEPTED = {1: "yes", 2: "no", 3: "unknown"}
FRAME_BYTES_MAX = 1452  # fits Ethernet over IPv6, and so over IPv4
WINDOW, PAUSE_S, PAUSE_MAX_S = 64, 0.02, 0.2
ACK_FORMAT, REFUSAL_FORMAT = "<IHH32sQ", "<QQ16sQ"
NO_ANSWER = {"kind": 10, "reason": 0, "accepted": 3, "content_type": 0}, b""


def hashed(domain, text):
    return hashlib.sha256(bytes([domain]) + text).digest()


def decode(data):
    """(header, segment) of a frame to a client, or None for what is none."""
    if len(data) < HEADER_BYTES:
        return None
    h = dict(zip(FIELDS, struct.unpack_from(HEADER_FORMAT, data)))
    sound = (h["version"] == VERSION and h["suite_phase"] == 0 and h["id_bytes"] == 0 and
             h["family"] in (REPLY, ACK, CHALLENGE) and not any(h["tag"] + h["reserved"]) and
             len(data) == HEADER_BYTES + h["segment_bytes"] and
             (h["family"] != REPLY or (h["kind"] in KINDS and h["reason"] in REASONS)))
    return (h, data[HEADER_BYTES:]) if sound else None


class Upload:
    """One message on its way to the node: a single frame, or segments in a window."""

    def __init__(self, client, header, name, payload):
        self.client, self.header, self.name, self.payload = client, header, name, payload
        self.unit = FRAME_BYTES_MAX - HEADER_BYTES - len(name)
        self.count = max(1, -(-len(payload) // self.unit))
        self.window, self.base, self.next = WINDOW, 0, 0
        self.acked, self.due, self.recover, self.done = set(), [], 0, False
        header["total_bytes"] = len(payload)
        if self.count > 1:
            header.update(flags=header["flags"] | FLAG_SEGMENTED, segment_unit=self.unit)

    def may_send_new(self):
        return self.next < min(self.count, self.base + self.window)

    def pump(self):
        while not self.done and (self.due or self.may_send_new()):
            index = self.due.pop(0) if self.due else self.next
            self.next = max(self.next, index + 1)
            header, offset = dict(self.header), index * self.unit
            if self.count > 1:
                header.update(segment_offset=offset, counter=self.client.new_counter())
                if not self.due and not self.may_send_new():
                    header["flags"] |= FLAG_ACK_NOW
            self.client.put(header, b"" if offset else self.name,
                            self.payload[offset:offset + self.unit])

    def report(self, body):
        base, self.window, done, bits, _ = struct.unpack(ACK_FORMAT, body)
        self.done, bits = self.done or done == 1, int.from_bytes(bits, "little")
        later = {base + 1 + i for i in range(256) if bits >> i & 1}
        self.acked |= later | set(range(self.base, base))
        while self.base in self.acked:
            self.base += 1
        top = max(later, default=base - 1) + 1
        if top > self.recover:  # something sent after the last repetition has arrived
            self.due = [i for i in range(self.base, top) if i not in self.acked]
            self.recover = self.next

    def silence(self):
        missing = [i for i in range(self.base, self.next) if i not in self.acked]
        if self.next > 0:
            self.due, self.recover = missing or [self.count - 1], self.next


class Download:
    """A reply in segments."""

    def __init__(self, header):
        self.total, self.unit = header["total_bytes"], header["segment_unit"]
        self.data, self.have, self.base = bytearray(self.total), set(), 0

    def take(self, header, segment):
        offset, unit = header["segment_offset"], header["segment_unit"]
        if unit != self.unit or header["total_bytes"] != self.total or offset % unit or \
                len(segment) != min(unit, self.total - offset):
            return  # does not fit the first one
        self.have.add(offset // unit)
        self.data[offset:offset + len(segment)] = segment
        while self.base in self.have:
            self.base += 1

    def whole(self):
        return self.base * self.unit >= self.total

    def report(self):
        bits = sum((self.base + 1 + i in self.have) << i for i in range(256)).to_bytes(32, "little")
        return struct.pack(ACK_FORMAT, self.base, WINDOW, self.whole(), bits, 0)


class Client:
    def __init__(self, node):
        host, _, port = node.rpartition(":")
        family, kind, _, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        self.socket = socket.socket(family, kind)
        self.socket.connect(address)
        self.session = secrets.randbelow(2**64 - 1) + 1
        self.counter = self.cookie = self.operation = 0

    def new_counter(self):
        self.counter += 1
        return self.counter

    def put(self, header, name=b"", segment=b""):
        h = {"version": VERSION, "session": self.session, "cookie": self.cookie, **header,
             "id_bytes": len(name), "segment_bytes": len(segment),
             "reserved": bytes(6), "tag": bytes(16)}
        data = struct.pack(HEADER_FORMAT, *[h.get(f, 0) for f in FIELDS]) + name + segment
        with contextlib.suppress(ConnectionRefusedError):  # an earlier frame met nobody: as if lost
            self.socket.send(data)

    def get(self, until):
        """The next frame that answers this session, or None when the time is over."""
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                frame = decode(self.socket.recv(65536))
            except (TimeoutError, ConnectionRefusedError):
                continue
            if frame and frame[0]["operation_scope"] == self.session:
                return frame
        return None

    def call(self, family, name, payload, end, **fields):
        """The reply as (header, body); True for a one-way message that left; None: no answer."""
        self.operation += 1
        lo, hi = struct.unpack("<QQ", hashed(1, name)[:16])
        upload = Upload(self, {
            "family": family, "counter": self.new_counter(), "flags": 0, "spot_key_lo": lo,
            "spot_key_hi": hi, "operation_scope": self.session, "operation_id": self.operation,
            "budget_us": max(1, int((end - time.monotonic()) * 1e6)), **fields}, name, payload)
        one_way, download, pause = family in (SEND, INTENT_SEND), None, PAUSE_S
        while (now := time.monotonic()) < end:
            if self.cookie:
                upload.pump()
            else:
                self.put({"family": HELLO, "counter": self.new_counter()})
            if one_way and self.cookie and (upload.done or upload.count == 1):
                return True
            header, body = self.get(min(end, now + pause)) or (None, b"")
            if header is None:
                upload.silence()
                pause = min(pause * 2, PAUSE_MAX_S)
            elif header["family"] == CHALLENGE:
                if header["cookie"] != self.cookie:  # the frames under way were not processed
                    self.cookie = header["cookie"]
                    upload.silence()
            elif header["operation_id"] == self.operation:
                pause = PAUSE_S
                if header["family"] == ACK:
                    upload.report(body)
                elif not header["flags"] & FLAG_SEGMENTED:
                    return header, body
                else:
                    upload.done, download = True, download or Download(header)
                    download.take(header, body)
                    self.acknowledge(header, download.report())
                    if download.whole():
                        return header, bytes(download.data)
        return None

    def acknowledge(self, header, report):
        same = ("spot_key_lo", "spot_key_hi", "operation_scope", "operation_id")
        self.put({"family": ACK, "counter": self.new_counter(), "content_type": CONTENT_ACK,
                  "total_bytes": len(report), **{f: header[f] for f in same}}, b"", report)


def show(header, body):
    print("%s %s accepted: %s" % (
        KINDS[header["kind"]], REASONS[header["reason"]], ACCEPTED[header["accepted"]]))
    if header["content_type"] == CONTENT_REFUSAL:
        limit, current, key, node = struct.unpack(REFUSAL_FORMAT, body)
        print("limit: %d\ncurrent: %d\nSpot: %s\nnode: %016x" % (limit, current, key.hex(), node))
    elif body:
        print(body.decode(errors="backslashreplace"))
    return 0 if header["kind"] == 1 else 1


def main():
    parser = argparse.ArgumentParser(description="Spotlane client")
    parser.add_argument("--node", required=True, metavar="HOST:PORT")
    parser.add_argument("verb", choices=["request", "send"])
    parser.add_argument("id")
    parser.add_argument("payload", nargs="?", default="")
    parser.add_argument("--intent", metavar="TYPE", help="Spot type that may be built")
    parser.add_argument("--type", type=int, default=0, metavar="N", help="message type")
    parser.add_argument("--timeout", type=int, default=2000, metavar="MS")
    a = parser.parse_args()
    payload = sys.stdin.buffer.read() if a.payload == "-" else a.payload.encode()
    family = {"request": (REQUEST, INTENT_REQUEST), "send": (SEND, INTENT_SEND)}[a.verb]
    type_key = int.from_bytes(hashed(3, (a.intent or "").encode())[:4], "little")
    reply = Client(a.node).call(
        family[a.intent is not None], a.id.encode(), payload, time.monotonic() + a.timeout / 1000,
        message_type=a.type, content_type=CONTENT_JSON if payload[:1] in (b"{", b"[") else 0,
        spot_type=type_key if a.intent else 0)
    if reply is True:
        print("sent")
        return 0
    return show(*(reply or NO_ANSWER))


if __name__ == "__main__":
    sys.exit(main())
