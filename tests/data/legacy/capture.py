#!/usr/bin/env python3
"""Writes a legacy table of this network namespace to a file, in the kernel's form:
the answer to GET_INFO, then the entries of the answer to GET_ENTRIES (without its header of 40 bytes).

capture.py ipv4|ipv6|arp TABLE FILE        (needs CAP_NET_ADMIN; creates the table if it does not exist)
"""
import ctypes
import os
import socket
import struct
import sys

FAMILIES = {  # domain, level, GET_INFO (GET_ENTRIES is the next number), hooks
    "ipv4": (socket.AF_INET, 0, 64, 5),
    "ipv6": (socket.AF_INET6, 41, 64, 5),
    "arp": (socket.AF_INET, 0, 96, 3),
}


def main(family, table, path):
    domain, level, get_info, hooks = FAMILIES[family]
    libc = ctypes.CDLL(None, use_errno=True)
    with socket.socket(domain, socket.SOCK_DGRAM) as sock:

        def get(option, argument):
            buffer = ctypes.create_string_buffer(argument, len(argument))
            length = ctypes.c_uint(len(argument))
            if libc.getsockopt(sock.fileno(), level, option, buffer, ctypes.byref(length)) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            return buffer.raw

        name = table.encode().ljust(32, b"\0")
        info = get(get_info, name + bytes(4 + 8 * hooks + 8))
        (size,) = struct.unpack("=I", info[-4:])
        entries = get(get_info + 1, name + struct.pack("=II", size, 0) + bytes(size))[40:]
    with open(path, "wb") as file:
        file.write(info + entries)


if __name__ == "__main__":
    main(*sys.argv[1:])
