"""The canonical form of a document takes no more memory than its bytes."""

import tracemalloc

from apisix_ingress.model.json import canonical


def test_canonical_form_keeps_no_buffer_of_the_parser() -> None:
    canonical({})
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [canonical({"id": str(number)}) for number in range(100)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(kept) < 200
