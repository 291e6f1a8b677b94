"""The innermost cause wins; a rule may only refine its words."""

from __future__ import annotations

import pytest

from hermes_doctor.diagnosis.plugins.log_causes.reading import Reading
from hermes_doctor.diagnosis.plugins.log_rules.blame import (
    Blame,
    Blamer,
    blamed,
    cause_words,
    key_of,
)
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from tests.helpers.cause_tables import CAUSES, DNS, JOBS, MODEL, PORT, REFUSED, TELEGRAM, TIMED_OUT

BLAMER = Blamer([*CAUSES, DNS._replace(code="TG-NETWORK")], ["JOB-FAILED", "TG-DOWN"])


def reading(cause: object, place: object = TELEGRAM, operation: str = "connect") -> Reading:
    """A line about a cause."""
    return Reading(place, operation, cause, {"port": "8443"}, "", "")  # type: ignore[arg-type]


def rule(code: str, detail: str = "") -> Rule:
    """A rule with a code."""
    line = LinePattern("x", ())
    return Rule("one", code, "error", "{platform} is unreachable", line, detail, next="Set it.")


def test_it_contradicts() -> None:
    """A rule that blames the network is wrong about a used port."""
    told = rule("TG-NETWORK", "Nobody gets an answer. Usually a proxy is needed.")
    blame = BLAMER.judge(reading(PORT), told)

    assert blame is not None and not blame.beside
    found = blamed(told._replace(unless_ok=["network"], fix="set-proxy"), blame)
    assert (found.code, found.title) == (
        "GW-PORT-IN-USE",
        "Telegram: port {port} is already in use",
    )
    assert found.detail == "Nobody gets an answer."
    assert found.next == PORT.advice
    assert (found.severity, found.effect_of) == ("error", "TG-NETWORK")
    assert (found.unless_ok, found.fix) == ((), None)
    assert found.id != told.id


def test_it_says_what_fails() -> None:
    """A rule that only says what fails gets the cause beside it."""
    blame = BLAMER.judge(reading(PORT), rule("JOB-FAILED"))

    assert blame is not None and blame.beside
    assert blamed(rule("JOB-FAILED"), blame).effect_of == ""


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (None, "TG-NETWORK"),
        (DNS, "NET-DNS"),  # the same
        (DNS, "QQ-DNS"),  # the same in other words
        (TIMED_OUT, "TG-NETWORK"),  # says too little
        (REFUSED, "TG-NETWORK"),  # the rule knows better what the other side means
        (DNS._replace(code="TG-DOWN"), "JOB-FAILED"),  # does not say why either
    ],
)
def test_the_rule_stays(cause: object, code: str) -> None:
    """The words of the rule are right, or better."""
    assert BLAMER.judge(reading(cause), rule(code)) is None


def test_a_fault_of_a_release() -> None:
    """A rule about certain releases knows their fault, but not whether the machine has another."""
    fault = rule("TG-NETWORK")._replace(versions=">=0.20,<0.20.1")
    code = PORT._replace(family="code")

    assert BLAMER.judge(reading(code), rule("TG-NETWORK")) is not None
    assert BLAMER.judge(reading(code), fault) is None
    assert BLAMER.judge(reading(PORT), fault) is not None


def test_words() -> None:
    """Without the value, the plain form is used; without a place, only the cause is named."""
    assert cause_words(PORT, {"port": "1"}) == "port {port} is already in use"
    assert cause_words(PORT, {}) == "a port is already in use"
    assert cause_words(DNS, {}) == "the server name cannot be resolved"
    assert Blame(DNS, None, {}).title == "the server name cannot be resolved"


def test_what_fails() -> None:
    """A connection fails as a whole, everything else for each cause."""
    assert key_of(reading(DNS, operation="log in")) == key_of(reading(PORT, operation="connect"))
    assert key_of(reading(None)) == key_of(reading(DNS))
    assert key_of(reading(DNS, JOBS, "run a job")) != key_of(reading(PORT, JOBS, "run a job"))
    assert key_of(reading(None, MODEL, "call the model")) is None
    assert key_of(reading(DNS, None)) is None


def test_the_reason_of_a_symptom() -> None:
    """A rule that only says what fails gets the words and the advice of the cause."""
    down = rule("TG-DOWN", "Nobody gets an answer.")
    cause = DNS._replace(codes=("TG-DOWN",))
    said = Reading(TELEGRAM, "connect", cause, {"said": "no such name"}, "", "")
    blame = BLAMER.reason(said, down)

    assert blame is not None
    found = BLAMER.with_reason(down, blame, "")
    assert (found.code, found.title) == (down.code, down.title)
    assert found.detail == (
        "Nobody gets an answer. The log names the cause: the server name cannot be resolved. "
        'The answer was: "{said}".'
    )
    assert found.next == DNS.advice


def test_the_answer_of_the_other_side() -> None:
    """A rule that names the cause keeps its words and gets the answer, unless it shows that."""
    told = rule("TG-BAD-TOKEN", "The token is wrong.")._replace(severity="info")
    said = Reading(TELEGRAM, "connect", REFUSED, {"said": "revoked by owner"}, "", "")
    blame = BLAMER.reason(said, told)

    assert blame is not None
    found = BLAMER.with_reason(told, blame, "")
    assert found.detail == 'The token is wrong. The answer was: "{said}".'
    assert (found.next, found.severity) == (told.next, "warning"), "it does not pass by itself"
    assert BLAMER.with_reason(told, blame, "401: revoked by owner").detail == told.detail
    assert BLAMER.reason(said._replace(fields={}), told) is None
    other = blame._replace(cause=REFUSED._replace(family="remote"))
    assert BLAMER.with_reason(told, other, "").severity == "info"


def test_local_data_of_a_platform() -> None:
    """A file that a platform's adapter reads or saves is no matter of the platform."""
    broken = DNS._replace(family="data", code="STORE-CORRUPT", by_part={"platform": "TG-NETWORK"})
    for operation, code in (("save", "STORE-CORRUPT"), ("receive", "TG-NETWORK")):
        key = key_of(reading(broken, operation=operation))
        assert Blame(broken, TELEGRAM, {}, key=key).code == code


def test_a_platforms_own_code() -> None:
    """It says more than the code of all platforms."""
    own = REFUSED._replace(by_platform={"telegram": "TG-BAD-TOKEN"})
    assert Blame(own, TELEGRAM, {}).code == "TG-BAD-TOKEN"
    assert Blame(own, MODEL, {}).code == "PROVIDER-401"
    assert own.means("TG-BAD-TOKEN")
