"""Runs a command in a separate network namespace, in which every address of the pod range is local.

Kubernetes rejects loopback addresses in endpoints, so pods need addresses of their own: a `local` route over the whole
pod range lets any process listen on any of them. This module sets up namespaces and routes only; the listeners are in
`e2e.workload`. Usage: `python -m e2e.netns [--publish PORT]... -- CMD...`; a published port of 127.0.0.1 can be reached
from outside as well.
"""

import argparse
import asyncio
import ctypes
import errno
import fcntl
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.forward import run_with_ports

POD_RANGE = ipaddress.IPv4Network("10.244.0.0/16")
CLIENT_RANGES = tuple(map(ipaddress.IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))
"""Documentation networks (RFC 5737): clients may use their addresses."""
POD_RANGE_V6 = ipaddress.IPv6Network("fd00:10:244::/64")
PodRange = ipaddress.IPv4Network | ipaddress.IPv6Network

CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000

# linux/rtnetlink.h, linux/netlink.h, linux/if.h, linux/sockios.h
RTM_NEWROUTE = 24
NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL = 0x1, 0x4, 0x400, 0x200
NLMSG_ERROR = 2
RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL = 255, 4, 254, 2
RTA_DST, RTA_OIF = 1, 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


class NamespaceError(Exception):
    """The machine does not permit creating a network namespace; the message names the remedy."""


def in_namespace() -> bool:
    """Return whether the pod range is local here, i.e. whether one of its addresses can be bound."""
    probe = str(POD_RANGE.broadcast_address - 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((probe, 0))
        except OSError:
            return False
    return True


def local_route_message(network: PodRange, oif: int, *, seq: int = 1) -> bytes:
    """Build the netlink request for `ip route add local NETWORK dev <oif>` (rtnetlink(7))."""
    family = socket.AF_INET if network.version == 4 else socket.AF_INET6
    header = struct.pack(
        "=BBBBBBBBI", family, network.prefixlen, 0, 0, RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, 0
    )
    body = header + _attribute(RTA_DST, network.network_address.packed) + _attribute(RTA_OIF, struct.pack("=I", oif))
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
    return struct.pack("=IHHII", 16 + len(body), RTM_NEWROUTE, flags, seq, 0) + body


def reply_errno(reply: bytes) -> int:
    """Return the error number in a netlink acknowledgement; 0 is success."""
    _, kind, _, _, _, code = struct.unpack_from("=IHHIIi", reply)
    if kind != NLMSG_ERROR:
        return errno.EPROTO
    return -int(code)


def id_map(inside: int, outside: int) -> str:
    """Write one line of /proc/self/uid_map (user_namespaces(7))."""
    return f"{inside} {outside} 1\n"


def enter() -> None:
    """Move this process into a new network namespace (and user namespace where that is needed) and set it up.

    Raises NamespaceError with one line when the machine forbids it.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        _unshare(CLONE_NEWNET)
    except PermissionError:
        try:
            _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        except OSError as e:
            raise NamespaceError(_refused(e)) from e
        _map_ids(uid, gid)
    except OSError as e:
        raise NamespaceError(_refused(e)) from e
    _set_up()


def main(argv: Sequence[str]) -> int:
    """Enter the namespace and run the command there."""
    parser = argparse.ArgumentParser(
        prog="python -m e2e.netns", description="Run a command where every address of the pod range is local."
    )
    parser.add_argument("--publish", type=int, action="append", default=[], metavar="PORT", help="reachable outside")
    parser.add_argument("command", nargs="+", metavar="-- CMD")
    args = parser.parse_args(argv)
    command: list[str] = args.command
    try:
        listeners = [_listen(port) for port in args.publish]
        # Ports can only be published from a namespace that this program creates.
        if listeners or not in_namespace():
            enter()
        if listeners:
            return asyncio.run(run_with_ports(command, listeners))
        os.execvp(command[0], command)
    except NamespaceError as e:
        print(f"e2e.netns: {e}", file=sys.stderr)
    except OSError as e:
        print(f"e2e.netns: cannot run {command[0]}: {e.strerror}", file=sys.stderr)
    return 1


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as e:
        raise NamespaceError(f"cannot publish port {port}: {e.strerror}; name a free one") from e


def _attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + b"\0" * (-length % 4)


def _unshare(flags: int) -> None:
    # os.unshare came with Python 3.12; 3.11 is supported.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _refused(error: OSError) -> str:
    return (
        f"cannot make a network namespace ({error.strerror}): run as root, or allow user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, "
        "user.max_user_namespaces>0), or in a container add --cap-add=SYS_ADMIN"
    )


def _map_ids(uid: int, gid: int) -> None:
    # The user id stays the same, so that files and caches have the same owner inside and outside.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(id_map(uid, uid))
    Path("/proc/self/gid_map").write_text(id_map(gid, gid))


def _set_up() -> None:
    try:
        _link_up("lo")
        oif = socket.if_nametoindex("lo")
        for network in (POD_RANGE, *CLIENT_RANGES):
            _add_route(network, oif)
    except OSError as e:
        raise NamespaceError(f"cannot set up the network namespace: {e}") from e
    _write_sysctl("net/ipv4/ip_unprivileged_port_start", "0")
    # IPv6 may be disabled on the machine; then there are no IPv6 pods, and everything else works.
    if _write_sysctl("net/ipv6/ip_nonlocal_bind", "1"):
        try:
            _add_route(POD_RANGE_V6, oif)
        except OSError as e:
            print(f"e2e.netns: no IPv6 pod range: {e}", file=sys.stderr)


def _link_up(name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", name.encode(), 0)
        reply = fcntl.ioctl(sock, SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", reply, 16)
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags | IFF_UP))


def _add_route(network: PodRange, oif: int) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.settimeout(5)
        sock.send(local_route_message(network, oif))
        code = reply_errno(sock.recv(4096))
    if code:
        raise OSError(code, f"adding the local route {network}: {os.strerror(code)}")


def _write_sysctl(name: str, value: str) -> bool:
    try:
        Path("/proc/sys", name).write_text(value)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
