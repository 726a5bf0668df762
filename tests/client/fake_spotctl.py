#!/usr/bin/env -S /usr/bin/python3 -I -S
# SPDX-License-Identifier: BSD-3-Clause
"""The few words of spotctl that the tour uses, asked of fake_node.py."""
import json
import socket
import sys


def main():
    words = sys.argv[1:]
    path = words[words.index("--socket") + 1]
    words = [w for w in words if w not in ("--socket", path, "--json")]
    args = {"id": words.pop()} if words[0] == "spot" else {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        with connection.makefile("rw", encoding="utf-8") as stream:
            stream.write(json.dumps({"op": ".".join(words), "args": args}) + "\n")
            stream.flush()
            answer = json.loads(stream.readline())
    if answer is None:
        sys.exit(7)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
