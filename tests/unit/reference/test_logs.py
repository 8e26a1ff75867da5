"""The page of log events names every event of the program, with its highest level, its message and its fields."""

from apisix_ingress.observability.log_messages import SENTENCES
from reference.logs import events, page


def test_every_event_has_a_message_and_every_message_an_event() -> None:
    assert set(events()) == set(SENTENCES) - {"log.incomplete"}  # written by the stream of the log itself


def test_level_of_a_method_that_is_chosen_before_the_call_is_found() -> None:
    assert events()["record.put"].levels == {"debug", "info"}
    assert events()["record.rejected"].levels == {"warning"}


def test_rows_have_messages_and_fields() -> None:
    text = page()
    assert "| `record.rejected` | a gateway cluster rejected a record | `error`, `name`, `record`, `status` |" in text
    assert text.index("## Errors") < text.index("`audit.crashed`") < text.index("## Warnings")
    assert "exc_info" not in text
