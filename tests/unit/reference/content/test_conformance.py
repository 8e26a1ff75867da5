"""The page on Gateway API conformance lists every feature, and why it is not supported."""

from __future__ import annotations

from reference.content.conformance import REASONS, features, page, report
from translation.gateway.entry.gateway_class import FEATURES


def test_every_feature_is_on_the_page() -> None:
    text = page()
    for feature in features(report()):
        line = f"| `{feature.name}` | {', '.join(feature.profiles) if feature.supported else REASONS[feature.name]} |"
        assert line in text


def test_reasons_are_only_given_for_features_that_are_not_supported() -> None:
    assert set(REASONS) == {each.name for each in features(report()) if not each.supported}


def test_the_class_claims_what_the_report_says() -> None:
    assert {each.name for each in features(report()) if each.supported} <= set(FEATURES)


def test_no_test_of_the_report_failed() -> None:
    parts = [profile[part] for profile in report()["profiles"] for part in ("core", "extended") if part in profile]
    assert {part["result"] for part in parts} == {"success"}
    assert not [part for part in parts if part["statistics"]["Failed"]]
