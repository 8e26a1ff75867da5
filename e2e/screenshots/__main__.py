"""`python -m e2e.screenshots [--out FOLDER] [--states …]`: run a gateway and a controller, photograph the status page.

Without `--states` only the pictures of the documents are taken, into docs/images. With it every page is taken, in light
and dark, wide and narrow: with healthy, broken or many objects, or with an unavailable gateway.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, product
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from e2e.browser import FLAGS, chromium
from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.demos.local import interruptible, say, start_controller, start_gateway
from e2e.devgateway.process import DevGateway
from e2e.screenshots.objects import Object, broken, healthy, many

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDE: ViewportSize = {"width": 1280, "height": 860}
NARROW: ViewportSize = {"width": 390, "height": 844}
QUIET = 2.5
"""Seconds without a change after which the gateway is considered in sync."""

Scheme = Literal["light", "dark"]

EXPLAINED = f"/explain?{urlencode({'url': 'https://api.example.org/v1/refunds/7'})}"
DOCUMENTED: Sequence[tuple[str, str, Scheme, ViewportSize]] = (
    ("overview", "", "light", WIDE),
    ("overview-dark", "", "dark", WIDE),
    ("overview-phone", "", "light", NARROW),
    ("problems", "/problems", "light", WIDE),
    ("explain", EXPLAINED, "light", WIDE),
)
STATES = ("well", "many", "broken", "away")
EVERY = (
    ("overview", ""),
    ("problems", "/problems"),
    ("hosts", "/hosts"),
    ("routes", "/records"),
    ("upstreams", "/records?kind=upstreams"),
    ("consumers", "/records?kind=consumers"),
    ("certificates", "/certificates"),
    ("gateway-api", "/gateway-api"),
    ("changes", "/changes"),
    ("conflicts", "/conflicts"),
    ("explain", EXPLAINED),
    ("explain-empty", "/explain"),
    ("search", "/search?q=shop"),
    ("object", f"/object?{urlencode({'kind': 'ApisixRoute', 'namespace': 'payments', 'name': 'refunds'})}"),
    ("http-route", f"/object?{urlencode({'kind': 'HTTPRoute', 'namespace': 'platform', 'name': 'auth'})}"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m e2e.screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES, help="where the pictures go (docs/images)")
    parser.add_argument(
        "--states", nargs="*", choices=STATES, default=(), help="every page in these states, to look at"
    )
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with interruptible() as stack:
        camera = Camera(stack.enter_context(_browser()), arguments.out)
        scene = Scene(stack)
        objects = {"well": healthy(), "many": chain(healthy(), many(1_200))}
        for state in arguments.states or ("broken",):
            if state == "away":
                scene.stop_gateway()
            else:
                scene.apply(objects.get(state) or chain(healthy(), broken()))
            if arguments.states:
                camera.take_every(scene, state)
            else:
                camera.take_documented(scene)
    return 0


@contextmanager
def _browser() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(viewport=WIDE, device_scale_factor=1.5, reduced_motion="reduce")
        yield context.new_page()
        browser.close()


class Scene:
    """A gateway and a controller that serves a file of objects."""

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apisix-ingress-screenshots-")))
        self._file = folder / "manifests" / "objects.json"
        self._file.parent.mkdir()
        self._gateway = start_gateway(stack, DevGateway())
        self.controller = Controller(
            folder,
            gateways={"default": self._gateway},
            manifests=self._file.parent,
            gateway_api={"enabled": True},
            sync={"audit_interval": "10s", "timeout": "2s"},
        )
        self._file.write_text(_listed(healthy()))
        start_controller(stack, self.controller)

    def apply(self, objects: Iterable[Object]) -> None:
        """Serve these objects, and return once the gateway has them."""
        self._file.write_text(_listed(objects))
        wait_until(self._settled, bool, "the gateway to have the records")

    def stop_gateway(self) -> None:
        """Stop the gateway, and return when the controller reports it."""
        self._gateway.stop()
        wait_until(lambda: self._overview()["clusters"][0]["state"], lambda state: state == "unreachable", "an outage")

    def _settled(self) -> bool:
        """Return whether nothing changes any more."""
        before = self._overview()
        time.sleep(QUIET)  # the controller is considered idle if its page does not change for this long
        now = self._overview()
        same = all(before[name] == now[name] for name in ("tiles", "attention_total", "changes_total"))
        return same and not now["clusters"][0]["records"]["pending"] and bool(now["headline"]["checked"])

    def _overview(self) -> Object:
        found: Object = json.loads(self.controller.probe("/status/api/overview")[1])
        return found


class Camera:
    """A browser page that takes pictures of the status page."""

    def __init__(self, page: Page, out: Path) -> None:
        self._page = page
        self._out = out

    def take_documented(self, scene: Scene) -> None:
        """Take the pictures that the documents show."""
        for name, path, scheme, size in DOCUMENTED:
            self._take(f"status-{name}", f"{scene.controller.url}/status{path}", scheme, size, whole=False)

    def take_every(self, scene: Scene, state: str) -> None:
        """Take every page, in both schemes and sizes."""
        schemes: tuple[Scheme, ...] = ("light", "dark")
        for (name, path), scheme, size in product(EVERY, schemes, (WIDE, NARROW)):
            url = f"{scene.controller.url}/status{path}"
            self._take(f"{state}-{name}-{scheme}-{size['width']}", url, scheme, size, whole=True)

    def _take(self, name: str, url: str, scheme: Scheme, size: ViewportSize, *, whole: bool) -> None:
        self._page.set_viewport_size(size)
        self._page.emulate_media(color_scheme=scheme)
        self._page.goto(url)
        expect(self._page.locator("#connection")).to_be_hidden()
        path = self._out / f"{name}.png"
        self._page.screenshot(path=path, full_page=whole)
        say(str(path))


def _listed(objects: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


if __name__ == "__main__":
    sys.exit(main())
