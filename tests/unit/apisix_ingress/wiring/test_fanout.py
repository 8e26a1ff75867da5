"""The fanout: every cluster gets the records, every listener the reports."""

from typing import Any, cast

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.records import UNKNOWN
from apisix_ingress.wiring.clusters import GatewayClusters
from apisix_ingress.wiring.fanout import Fanout
from tests.factories import make_key, make_record

KEYS = [make_record("one").key]


class Taker:
    """A cluster and a listener at once."""

    def __init__(self) -> None:
        self.marked: list[tuple[Any, ...]] = []
        self.reports: list[ObjectKey] = []

    def mark_dirty(self, keys: Any, **options: Any) -> None:
        self.marked.append((keys, options))

    def reported(self, owner: ObjectKey) -> None:
        self.reports.append(owner)


def test_every_cluster_gets_marked_records_and_every_listener_gets_reports() -> None:
    east, west, page = Taker(), Taker(), Taker()
    clusters = GatewayClusters()
    clusters.syncs = [cast("ClusterSync", east), cast("ClusterSync", west)]
    fanout = Fanout(clusters, (page,))
    fanout.mark_dirty(KEYS, urgent=True, former=UNKNOWN, since=3.0)
    fanout.reported(make_key())
    want = [(KEYS, {"urgent": True, "former": UNKNOWN, "since": 3.0})]
    assert (east.marked, west.marked, page.reports) == (want, want, [make_key()])
