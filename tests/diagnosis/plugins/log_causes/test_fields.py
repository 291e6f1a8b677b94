"""The reason that a server gives is taken out of an error."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.plugins.log_causes.fields import MOST, server_words


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Error code: 400 - {'error': {'message': \"Invalid value for 'messages'\", 'code': 1}}",
            "Invalid value for 'messages'",
        ),
        (  # JSON inside JSON: the inner one says more than `Provider returned error`
            'HTTP 400: {"error":{"message":"Provider returned error","metadata":'
            '{"raw":"{\\"message\\":\\"input_schema: extra inputs\\"}"}}}',
            "input_schema: extra inputs",
        ),
        ("send failed: code=230013, msg=Bot has NO availability.", "Bot has NO availability."),
        ("errcode 40013 errmsg=invalid corpid, hint: [123]", "invalid corpid"),
        ("400 Bad Request (error code: 50035): Invalid Form Body", "Invalid Form Body"),
        ("after 3 retries. HTTP 402: This needs more credits.", "This needs more credits."),
        ("HTTP 404: No such page | provider=custom model=m", "No such page"),
        ("WebSocket closed: code=4009 reason=Session timed out", "Session timed out"),
        ('{"code": 11298, "message": "接口访问源IP不在白名单"}', "接口访问源IP不在白名单"),
        ("Error code: 401 - {'detail': 'Unauthorized'}", ""),  # the status says that already
        ("inbound message: platform=telegram msg='give me the reason'", ""),
        ("[Errno 111] Connection refused", ""),
        ("HTTP 502: <html><title>Bad Gateway</title>", ""),
    ],
)
def test_the_reason(text: str, reason: str) -> None:
    """The innermost text of an answer, whatever its form."""
    assert server_words(text) == reason


def test_long_reasons() -> None:
    """They end after a whole word."""
    found = server_words("{'message': '" + "many words " * 100 + "'}")
    assert len(found) <= MOST + 2 and found.endswith(("words …", "many …"))


@pytest.mark.parametrize(
    "text", ["'message': '" * 300, '\\"' * 1000, "msg=" * 500, "HTTP 400: " * 200]
)
def test_hostile_lines(text: str) -> None:
    """They take no time."""
    import time

    start = time.process_time()
    server_words(text)
    assert time.process_time() - start < 0.2
