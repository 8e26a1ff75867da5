"""The webhook from settings: it listens, counts, and is closed."""

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic import SecretStr

from apisix_ingress.errors import ConfigError, GatewayUnauthorized
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.tasks import cancel
from apisix_ingress.settings import WebhookSettings
from apisix_ingress.webhook.service import NOT_READY, ReviewMetrics, Webhook, open_webhook
from tests.factories import make_custom
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.clock import FakeClock
from tests.samples import sample
from tests.unit.apisix_ingress.webhook.test_overlay import view_of
from tests.unit.apisix_ingress.webhook.worlds import leaf, make_review, make_world, manifest
from tests.waiting import until
from translation.core.context import Context
from translation.core.options import Options


def settings(folder: Path, listen: str = "127.0.0.1:0") -> WebhookSettings:
    pair, cert, key = leaf("127.0.0.1", "127.0.0.1"), folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(pair.cert_chain_pems[0].bytes())
    key.write_bytes(pair.private_key_pem.bytes())
    return WebhookSettings(enabled=True, listen=listen, cert_file=str(cert), key_file=str(key))


async def opened(folder: Path, metrics: Metrics, held: AsyncExitStack, listen: str = "127.0.0.1:0") -> Webhook:
    async def read(path: str) -> bytes:
        return b"{}"

    return await open_webhook(
        settings(folder, listen),
        make_world(),
        Options(),
        {"default": read},
        ready=lambda: False,
        metrics=metrics,
        clock=FakeClock(),
        rng=random.Random(0),
        held=held,
    )


async def test_webhook_listens_and_shows_how_old_schemas_are(tmp_path: Path) -> None:
    metrics = Metrics(pod="p", namespace="n")
    async with AsyncExitStack() as held:
        webhook = await opened(tmp_path, metrics, held)
        assert webhook.port > 0
        metrics.render()
        assert sample(metrics, "webhook_schema_age_seconds", {"cluster": "default"}) is None
        run = asyncio.create_task(webhook.run(), name="webhook")
        await until(webhook.schema_ages, "compiled schemas")
        await cancel(run)
        metrics.render()
        assert sample(metrics, "webhook_schema_age_seconds", {"cluster": "default"}) == 0


async def test_address_in_use_is_reported(tmp_path: Path) -> None:
    metrics = Metrics(pod="p", namespace="n")
    async with AsyncExitStack() as held:
        webhook = await opened(tmp_path, metrics, held)
        with pytest.raises(ConfigError, match=r"webhook\.listen: cannot listen"):
            await opened(tmp_path, metrics, held, f"127.0.0.1:{webhook.port}")


async def test_nothing_is_judged_before_the_world_is_complete(tmp_path: Path) -> None:
    async with AsyncExitStack() as held:
        webhook = await opened(tmp_path, Metrics(pod="p", namespace="n"), held)
        assert webhook.judge(make_review(manifest({"http": 7}))) == NOT_READY


@pytest.mark.parametrize(("kind", "want"), [("ApisixTls", "ApisixTls"), ("Ingress", "Ingress"), ("Pod", "other")])
def test_requests_are_counted_under_few_kinds(kind: str, want: str) -> None:
    metrics = Metrics(pod="p", namespace="n")
    ReviewMetrics(metrics).answered(kind, "denied", 0.5)
    assert sample(metrics, "webhook_requests_total", {"kind": want, "result": "denied"}) == 1


@pytest.mark.parametrize("key", ["", "wrong"])
async def test_a_gateway_is_queried_with_the_admin_key(key: str) -> None:
    async with FakeAdminApi() as gateway:
        secret = SecretStr(key or gateway.key)
        backend = AdminClient(gateway.url, AdminKey(lambda: secret), controller="c", timeout=5, concurrency=1)
        try:
            if key:
                with pytest.raises(GatewayUnauthorized):
                    await backend.read("routes")
            else:
                assert b"list" in await backend.read("routes")
        finally:
            await backend.aclose()


def test_a_problem_names_its_object() -> None:
    item = make_custom()
    view = view_of(item)
    outer, middle, inner = (Context("ApisixRoute", "default", view, Options()) for _ in range(3))
    far, near = (ObjectKey("ApisixUpstream", "default", name) for name in ("far", "near"))
    inner.error("InvalidSpec", "spec.x", "is wrong")
    middle.adopt(inner, "spec.y", far)
    outer.adopt(middle, "spec.z", near)
    outer.error("InvalidSpec", "spec.a", "is wrong, too")
    assert [problem.origin for problem in outer.problems] == [far, None]
