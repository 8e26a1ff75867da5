"""The messages to the kernel that set up a network namespace."""

import errno
import struct

import pytest

from e2e import netns


def test_the_route_message_for_ipv4_equals_that_of_iproute2() -> None:
    got = netns.local_route_message(netns.POD_RANGE, 1, seq=7)
    want = (
        struct.pack("=IHHII", 44, 24, 0x605, 7, 0)  # nlmsghdr: RTM_NEWROUTE, REQUEST|ACK|CREATE|EXCL
        + bytes([2, 16, 0, 0, 255, 4, 254, 2, 0, 0, 0, 0])  # rtmsg: AF_INET /16, table local, scope host, type local
        + struct.pack("=HH", 8, 1)
        + bytes([10, 244, 0, 0])  # RTA_DST
        + struct.pack("=HHI", 8, 4, 1)  # RTA_OIF
    )
    assert got == want


def test_the_route_message_for_ipv6_has_its_family_and_length() -> None:
    got = netns.local_route_message(netns.POD_RANGE_V6, 1)
    assert len(got) == struct.unpack_from("=I", got)[0] == 56
    assert tuple(got[16:18]) == (10, 64)
    assert got[32:48] == netns.POD_RANGE_V6.network_address.packed


@pytest.mark.parametrize("code", [0, errno.EEXIST, errno.EPERM])
def test_an_acknowledgement_carries_an_error_number(code: int) -> None:
    assert netns.reply_errno(struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -code)) == code


def test_any_other_response_is_a_protocol_error() -> None:
    assert netns.reply_errno(struct.pack("=IHHIIi", 20, 3, 0, 1, 0, 0)) == errno.EPROTO


def test_an_id_map_keeps_one_id() -> None:
    assert netns.id_map(1000, 1000) == "1000 1000 1\n"


def test_a_missing_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        netns.main(["--"])
    assert ended.value.code == 2
    assert "usage: python -m e2e.netns" in capsys.readouterr().err
