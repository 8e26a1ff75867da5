"""Ports that are chosen before they are used."""

from e2e.devgateway.ports import INNER_PORTS, PORTS, free_port

# From here on outgoing connections take a port of their own (net.ipv4.ip_local_port_range).
EPHEMERAL = 32_768


def test_no_port_is_chosen_twice() -> None:
    got = [free_port() for _ in range(300)]
    assert len(set(got)) == 300


def test_a_process_never_chooses_what_its_parent_chose_for_it() -> None:
    outer, inner = ({free_port(among=ports) for _ in range(300)} for ports in (PORTS, INNER_PORTS))
    assert (outer <= set(PORTS), inner <= set(INNER_PORTS)) == (True, True)
    assert set(PORTS).isdisjoint(INNER_PORTS)
    assert max(*PORTS, *INNER_PORTS) < EPHEMERAL
