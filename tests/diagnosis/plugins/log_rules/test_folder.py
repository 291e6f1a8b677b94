"""Compiled rules are the rules that were written."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
import yaml

from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes import tables
from hermes_doctor.diagnosis.plugins.log_rules import folder, source
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.hermes.logs.entry import LogEntry
from tests.diagnosis.plugins.log_rules.test_source import GOOD
from tests.helpers import support
from tests.helpers.rule_lines import asking, entry, lines, said, written

RULES = builtin("checks") / "signatures"


def test_a_round_trip(tmp_path: Path) -> None:
    """Packed and unpacked, a rule with everything in it is the same."""
    cleared = {"pattern": "all is well", "examples": ["x"], "level": "info"}
    follow = {"pattern": "again", "examples": ["x"], "within": "3m"}
    rule = {
        **GOOD,
        "cleared_by": [cleared],
        "followed_by": follow,
        "logger": ["a", "b"],
        "unless_ok": ["database-pages"],
        "settle": "5m",
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"rules": [rule]}))
    (tmp_path / "explanations.yaml").write_text(
        "explanations:\n- {cause: A, explains: [B], because: So.}\n"
    )
    held = folder.Folder(tmp_path).rule_set

    assert held.faults == () and len(held.rules) == len(held.explanations) == 1
    again = folder.read_compiled(folder.compile_rules(held).encode())
    assert folder.compile_rules(again) == folder.compile_rules(held)
    assert again.rules[0].cleared_by[0].pattern == "all is well"


def test_only_our_own_are_compiled(tmp_path: Path) -> None:
    """In an operator's folder a compiled file is none of ours, and is not read."""
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"rules": [GOOD]}))
    (tmp_path / folder.RULES).write_text('{"rules": [["x"]]}')
    (tmp_path / folder.CODES).write_text("é")

    found = folder.Folder(tmp_path)

    assert found.codes == ("DB-LOCKED",) and [rule.id for rule in found.rule_set.rules] == [
        "a-rule"
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("last", ["A9", "A0"])
def test_a_long_chain_of_explanations(last: str, tmp_path: Path) -> None:
    """However long it is, it is followed to its end, and a circle is found."""
    chain = [{"cause": f"A{n}", "explains": [f"A{n + 1}"], "because": "x"} for n in range(3000)] + [
        {"cause": "A3000", "explains": [f"B-{last}"], "because": "x"}
    ]
    chain += [{"cause": "B-A0", "explains": ["A0"], "because": "x"}]
    (tmp_path / "explanations.yaml").write_text(json.dumps({"explanations": chain}))

    held = folder.Folder(tmp_path).rule_set

    assert bool(held.explanations) is (last == "A9")
    assert ["goes in a circle" in str(fault) for fault in held.faults] == [True] * (last == "A0")


def test_the_compiled_rules_say_the_same() -> None:
    """The built-in folder has no mistake, and its computed codes are those of rules and causes."""
    read, causes = folder.read_source(RULES), tables.read_source(RULES)
    assert read.faults == () and causes.faults == ()
    computed = folder.Folder(RULES, ours=True)
    assert folder.compile_rules(computed.rule_set) == folder.compile_rules(read)
    assert computed.codes == tuple(sorted({*read.codes, *tables.codes(causes)}))


def test_mistakes_in_tables_are_reported(tmp_path: Path) -> None:
    """As those in rules are; without the mistakes, nothing is left out."""
    (tmp_path / "places.yaml").write_text("places: 3\n")

    [fault] = folder.Folder(tmp_path).faults

    assert str(fault).startswith("places.yaml:1: must hold")


def test_the_examples_of_every_rule() -> None:
    """Each example matches its rule, and each near miss does not."""
    for sample in written().samples:
        for text in sample.examples:
            assert _matches(sample, text), (sample.rule.id, text)
        for text in sample.near:
            assert not _matches(sample, text), (sample.rule.id, text)


def _matches(sample: source.Sample, text: str) -> bool:
    one = entry(text, sample.rule.source)
    found = asking(sample.rule).ask(one)
    return any(match.rule is sample.rule and _role(sample, match.role) for match in found)


def _role(sample: source.Sample, role: str) -> bool:
    if sample.line is sample.rule.line:
        return role == "match"
    lists = {"given up": sample.rule.given_up_by, "answered": sample.rule.answered_by}
    for name, others in lists.items():
        if any(sample.line is line for line in others):
            return role == name
    return role == ("follow" if sample.line is sample.rule.followed_by else "clear")


def test_the_window_of_all_rules() -> None:
    """Logs are read for a day at most, the small records for a week: a look is bounded."""
    ledger = IncidentTracker(folder.Folder(RULES, ours=True).rule_set.rules, now=0.0)
    assert ledger.needed.since("log", "stderr", "journal") >= -86400
    assert ledger.needed.since() >= -7 * 86400


def test_what_rules_name_is_there() -> None:
    """Fixes list the codes that rules send to them; codes that explanations name exist."""
    loaded = load.load()
    fixes = {fix.id: fix.codes for fix in loaded.fixes}
    checks = {check.id for check in loaded.checks}
    codes = {code for check in loaded.checks for code in check.codes}

    assert [rule.id for rule in loaded.rules if rule.fix and rule.code not in fixes[rule.fix]] == []
    assert {name for rule in loaded.rules for name in rule.unless_ok} <= checks
    assert {code for one in loaded.explanations for code in (one.code, *one.explains)} <= codes


def test_platforms_are_not_blamed_for_one_another() -> None:
    """Where a log names the platform of both sides, a cause holds for the same one only."""
    held = folder.Folder(RULES, ours=True).rule_set
    named: dict[str, bool] = {}
    for rule in held.rules:
        names = bool(rule.platform) or "(?P<platform>" in rule.line.pattern
        named[rule.code] = named.get(rule.code, True) and names
    about = {code for code, names in named.items() if names} - {"ENV-REDACTED"}  # of a file, too

    loose = {
        (cause.code, code)
        for cause in held.explanations
        for code in cause.explains
        if not cause.same_platform and {cause.code, code} <= about
    }
    assert loose == set()


QQ = "gateway.platforms.qqbot.adapter"
CLOSED = "[QQBot:102000001] WebSocket closed: code=4009 reason=Session timed out"
RESUMED = "[QQBot:102000001] Session resumed"


pytestmark = pytest.mark.usefixtures("utc")


def ago(minutes: float, text: str, level: str = "WARNING", logger: str = QQ) -> LogEntry:
    """A line that was written so many minutes ago."""
    return said(time.time() - 60 * minutes, text, level, logger)


def put(home: Path, *entries: LogEntry) -> None:
    """Write them as Hermes does: all into gateway.log, warnings into errors.log as well."""
    (home / "logs").mkdir(exist_ok=True)
    ordered = sorted(entries, key=lambda one: one.at)
    latest = ago(0, "Cron ticker alive", "INFO", "gateway.run")
    (home / "logs" / "gateway.log").write_text(lines([*ordered, latest]))
    bad = [one for one in ordered if one.level != "INFO"]
    (home / "logs" / "errors.log").write_text(lines(bad))


def codes(home: Path, *more: str) -> list[str]:
    """What the logs tell."""
    return support.doctor("check", "--json", "--only", "logs", "--home", home, *more).codes


def test_closed_and_resumed(home: Path) -> None:
    """A session that QQ ends is no fault when it is taken up again, and one when it is not."""
    put(home, ago(30, CLOSED), ago(29, RESUMED, "INFO"))
    assert codes(home) == []
    put(home, ago(30, CLOSED), ago(29, RESUMED, "INFO"), ago(10, CLOSED))
    assert codes(home) == ["QQ-4009"]
    put(home, ago(1, CLOSED))
    assert codes(home) == [], "too early to say"


def test_where_it_stands(home: Path) -> None:
    """The evidence names file and line, and quotes no more than the pattern matched."""
    put(home, ago(50, RESUMED, "INFO"), ago(10, CLOSED + " token=hunter2hunter2"))

    done = support.doctor("check", "--json", "--only", "logs", "--home", home)

    [finding] = done.json["findings"]
    assert finding["evidence"][0]["where"] in ("logs/gateway.log:2", "logs/errors.log:1")
    assert "hunter2" not in done.out
    assert finding["since"] is not None and finding["fix"]["id"] == "restart-gateway"


def test_a_line_in_two_files_counts_once(home: Path) -> None:
    """What stands in gateway.log and in errors.log happened once."""
    put(home, *(ago(10 + n, CLOSED) for n in range(3)))

    [finding] = support.doctor("check", "--json", "--only", "logs", "--home", home).json["findings"]

    assert "3 times" in finding["detail"]


def test_a_log_that_does_not_reach_back(home: Path) -> None:
    """Warnings are kept longer than what tells of their end: then it is said to be in doubt."""
    put(home, ago(10, "Press Ctrl+C to stop", "INFO", "gateway.run"))
    errors = home / "logs" / "errors.log"
    errors.write_text(lines([ago(120, CLOSED)]))
    os.utime(errors, (time.time() - 7200,) * 2)
    [doubt] = support.doctor("check", "--json", "--only", "logs", "--home", home).json["findings"]
    assert (doubt["code"], doubt["severity"]) == ("QQ-4009", "warning")
    assert "It may be over" in doubt["detail"]
    (home / "logs" / "errors.log").write_text(lines([ago(8, CLOSED)]))
    [sure] = support.doctor("check", "--json", "--only", "logs", "--home", home).json["findings"]
    assert (sure["code"], sure["severity"]) == ("QQ-4009", "error")


def test_a_quick_look_that_is_not_enough(home: Path) -> None:
    """When much was written since, more of the log is read before anything is claimed."""
    talk = [
        ago(50 - n / 400, f"talk {n} " + "x" * 100, "INFO", "gateway.run") for n in range(15000)
    ]
    put(home, ago(70, CLOSED), ago(69, RESUMED, "INFO"), *talk)
    assert (home / "logs" / "gateway.log").stat().st_size > 2 * MEGABYTE
    assert codes(home) == []
    put(home, ago(70, CLOSED), *talk)
    assert codes(home) == ["QQ-4009"]


def test_a_log_that_was_quiet(home: Path) -> None:
    """A log in which nothing was written since tells that nothing was over, either."""
    put(home)
    log = home / "logs" / "gateway.log"
    log.write_text(lines([ago(5 * 1440, "Press Ctrl+C to stop", "INFO", "gateway.run")]))
    os.utime(log, (time.time() - 5 * 86400,) * 2)
    (home / "logs" / "errors.log").write_text(lines([ago(30, CLOSED)]))

    [sure] = support.doctor("check", "--json", "--only", "logs", "--home", home).json["findings"]

    assert (sure["code"], sure["severity"]) == ("QQ-4009", "error")


def test_what_only_the_whole_log_tells(home: Path) -> None:
    """Agents write into agent.log alone; what they say ends what was in errors.log."""
    put(home, ago(40, "Press Ctrl+C to stop", "INFO", "gateway.run"))
    rule = next(r for r in load.load().rules if r.code == "PROVIDER-401" and r.cleared_by)
    samples = written().samples
    mine = [one for one in samples if one.rule.id == rule.id]
    bad = entry(mine[0].examples[0])._replace(at=time.time() - 1800)
    good = entry(mine[1].examples[0])._replace(at=time.time() - 600)
    assert not good.logger.startswith("gateway")
    (home / "logs" / "errors.log").write_text(lines([bad]))
    (home / "logs" / "agent.log").write_text(lines([bad]))
    assert "PROVIDER-401" in codes(home)
    (home / "logs" / "agent.log").write_text(lines([bad, good]))
    assert "PROVIDER-401" not in codes(home)


@pytest.mark.parametrize(
    ("config", "env", "place"),
    [
        ("  api_key: sk-abcdefghijklmnop\n", "", "`model.api_key` in config.yaml:5"),
        ("  api_key: ${RELAY_KEY}\n", "A=1\nRELAY_KEY=sk-abcdefghijklm\n", "`RELAY_KEY` in .env:2"),
        ("", "", "the key"),
    ],
)
def test_where_the_rejected_key_is(home: Path, config: str, env: str, place: str) -> None:
    """The advice names the line that sets the key, or no place if none is known."""
    model = "model:\n  provider: custom\n  default: m\n  base_url: http://127.0.0.1:9/v1\n"
    support.put(home / "config.yaml", model + config)
    support.put(home / ".env", env)
    failed = (
        "API call failed (attempt 1/3) error_type=AuthenticationError thread=a:1 provider=custom "
        "base_url=http://127.0.0.1:9/v1 model=m summary=HTTP 401: invalid key"
    )
    put(home, ago(5, failed, logger="agent.conversation_loop"))

    [finding] = support.doctor("check", "--json", "--only", "logs", "--home", home).json["findings"]
    assert finding["next"].startswith(f"Replace {place} or log in again")


def test_no_log_yet(home: Path) -> None:
    """A home without logs is not asked."""
    shutil.rmtree(home / "logs", ignore_errors=True)
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    assert [one["status"] for one in done.json["checks"]] == ["skipped"]


@pytest.mark.parametrize("kind", ["file", "dangling", "loop"])
def test_no_folder_of_logs(home: Path, kind: str) -> None:
    """What lies in its place is not the same as no log yet."""
    shutil.rmtree(home / "logs", ignore_errors=True)
    if kind == "file":
        (home / "logs").write_text("x")
    else:
        (home / "logs").symlink_to("logs" if kind == "loop" else "nowhere")
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    assert [one["status"] for one in done.json["checks"]] == ["unknown"]


@pytest.mark.sampled
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("since", ["0001-01-01", "0001-01-02", "99999w", "1969-01-01"])
def test_timeline_of_all_time(
    home: Path, since: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first and the last day of the calendar are no trouble in any zone."""
    monkeypatch.setenv("TZ", zone)
    put(home, ago(30, CLOSED))
    last = "9999-12-31 23:59:59,999 ERROR gateway.platforms.qqbot.adapter: [QQBot:1] Bot is banned."
    with (home / "logs" / "errors.log").open("a") as log:
        log.write(f"{last} Check QQ Open Platform.\n")
    for more in ([], ["--json"]):
        done = support.doctor("timeline", "--home", home, "--since", since, *more)
        assert (done.code in (0, 2), "bug" in done.err) == (True, False), done.err
    assert support.doctor("check", "--only", "logs", "--home", home).code in (0, 1, 3)


def test_rules_of_an_operator(home: Path, tmp_path: Path) -> None:
    """A file of one's own is used as the built-in ones are; a mistake in it is named."""
    own = tmp_path / "mine" / "signatures"
    own.mkdir(parents=True, mode=0o755)
    rule = {**GOOD, "id": "mine", "code": "MY-CODE", "pattern": "the coffee is out"}
    (own / "mine.yaml").write_text(yaml.safe_dump({"rules": [rule, {**rule, "severity": "bad"}]}))
    put(home, ago(5, "the coffee is out", logger="my.plugin"))

    done = support.doctor(
        "check", "--json", "--only", "logs", "--home", home, "--plugins", own.parent
    )

    assert done.codes == ["MY-CODE"]
    [broken] = [one for one in done.json["checks"] if one["status"] == "crashed"]
    assert "mine.yaml" in broken["id"] and "`severity` must be one of" in broken["reason"]


def test_timeline(home: Path) -> None:
    """Incidents and their ends, edits and backups stand in the order of time."""
    put(home, ago(30, CLOSED), ago(29, RESUMED, "INFO"))
    support.put(home / "config.yaml", "model: {}\n")
    assert support.doctor("backup", "create", "--home", home, "--reason", "a test").code == 0

    done = support.doctor("timeline", "--home", home, "--since", "2h")
    told = support.doctor("timeline", "--home", home, "--since", "2h", "--json").json

    assert done.code == 0 and told["schema"] == "hermes-doctor/timeline/1"
    kinds = [event["kind"] for event in told["events"] if event["code"] == "QQ-4009"]
    assert kinds[0] == "incident" and kinds[-1] == "recovery"
    assert [event["at"] for event in told["events"]] == sorted(e["at"] for e in told["events"])
    assert {"edit", "backup"} <= {event["kind"] for event in told["events"]}
    assert "QQ-4009" in done.out and "a test" in done.out and "config.yaml" in done.out


@pytest.mark.parametrize("since", ["", "soon", "2 h ago", "2999-01-01", "99999999d", "-1h"])
def test_timeline_since(home: Path, since: str) -> None:
    """A moment that is none is one clear line."""
    done = support.doctor("timeline", "--home", home, "--since", since)
    assert done.code == 2 and done.err.count("\n") == 1 and "--since" in done.err


def test_timeline_of_nothing(home: Path) -> None:
    """A home in which nothing left a trace says so."""
    shutil.rmtree(home / "logs", ignore_errors=True)
    old = time.time() - 9 * 86400
    for path in home.iterdir():
        os.utime(path, (old, old))
    done = support.doctor("timeline", "--home", home, "--since", "1h")
    assert done.code == 0 and "No restart, error" in done.out
    assert json.loads(support.doctor("timeline", "--home", home, "--since", "1h", "--json").out)


BLOCKED = (
    'Tool terminal returned error (60.18s): {"output": "", "exit_code": -1, "error": '
    '"BLOCKED: Command timed out without user response."}'
)


@pytest.mark.parametrize(
    ("more", "cause"), [("", "QQ-4009"), (f"TELEGRAM_BOT_TOKEN=1:{'a' * 35}\n", None)]
)
def test_a_command_that_ran_out_of_time_somewhere(home: Path, more: str, cause: str | None) -> None:
    """A lost session of QQ is what it follows from only where nobody can have meant another."""
    support.put(home / ".env", f"QQ_APP_ID=102000001\nQQ_CLIENT_SECRET=x\n{more}")
    late = [ago(minutes, BLOCKED, logger="agent.tool_executor") for minutes in (9, 6, 3)]
    put(home, ago(20, CLOSED), *late)
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    by_code = {one["code"]: one["caused_by"] for one in json.loads(done.out)["findings"]}

    assert by_code == {"QQ-4009": None, "APPROVAL-TIMEOUT": cause}


@pytest.mark.parametrize(("chat", "dead"), [("U1", True), ("U2", False)])
def test_whose_session_it_was_is_known_from_the_sessions(home: Path, chat: str, dead: bool) -> None:
    """The log names the session of a command by its number, that of a click by its chat."""
    known = {f"agent:main:qqbot:dm:{chat}": {"session_id": "20261115_001248_df794ef7"}}
    text = json.dumps({"_README": "what this is", **known})
    support.put(home / "sessions" / "sessions.json", text)
    click = "[QQBot:1] Rejected unauthorized approval click for session agent:main:qqbot:dm:U1"
    late = ago(5, BLOCKED, logger="agent.tool_executor")
    tagged = late._replace(session="20261115_001248_df794ef7")
    put(home, ago(6, f"{click} (operator=U1)"), tagged)
    done = support.doctor("check", "--json", "--only", "logs", "--home", home)
    found = {(one["code"], one["severity"]) for one in json.loads(done.out)["findings"]}

    assert (("APPROVAL-DEADLOCK", "error") in found) is dead


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (None, "skipped"),
        ("logs/gateway.log", "ok"),
        ("logs/agent.log.1", "ok"),
        ("gateway-starts.log", "ok"),
        ("profiles/shop/logs/gateway.log", "skipped"),
    ],
)
def test_nothing_was_written_yet(tmp_path: Path, name: str | None, status: str) -> None:
    """A home without a line has nothing to be asked, which is told; one file, and it is asked."""
    home = support.healthy(tmp_path / "home")
    shutil.rmtree(home / "logs")
    (home / "logs").mkdir()
    if name:
        support.put(home / name, "")
    [log] = [one for one in support.check(home).json["checks"] if one["id"] == "log-rules"]

    assert log["status"] == status


MAIN, SPARE = "http://127.0.0.1:7001/v1", "http://127.0.0.1:7002/v1"
TWO_SERVERS = f"""\
model: {{provider: custom, default: thinker, base_url: {MAIN}, api_key: no-key}}
fallback_providers:
- {{provider: custom, model: spare, base_url: {SPARE}, api_key: no-key}}
"""
LOOP = "agent.conversation_loop"
DOWN = "local server does not answer"


def attempt(minutes: float, address: str, model: str, error: str, summary: str) -> LogEntry:
    """A call that failed, as Hermes 0.19 logs it; both servers are called `custom`."""
    words = (
        f"API call failed (attempt 1/3) error_type={error} thread=asyncio_0:1 provider=custom "
        f"base_url={address} model={model} summary={summary}"
    )
    return ago(minutes, words, logger=LOOP)


def refused(minutes: float) -> LogEntry:
    """The main model rejects the key."""
    return attempt(minutes, MAIN, "thinker", "AuthenticationError", "HTTP 401: invalid key")


def down(minutes: float, address: str, model: str) -> list[LogEntry]:
    """Nothing listens at the address, although Hermes adds a slash to it."""
    error = "APIConnectionError", "Connection error."
    return [attempt(minutes - n / 60, f"{address}/", model, *error) for n in range(3)]


def given_up(minutes: float) -> LogEntry:
    """The message gets no answer."""
    words = (
        "API call failed after 3 retries. Connection error. | provider=custom model=spare msgs=2"
    )
    return ago(minutes, words, "ERROR", LOOP)


def judged(home: Path, *entries: LogEntry) -> tuple[list[tuple[str, str]], str, str]:
    """Each problem of the model with its title, the line about the model, and the headline."""
    support.put(home / "config.yaml", TWO_SERVERS)
    put(home, *entries)
    found = support.doctor("check", "--json", "--home", home).json
    titles = [
        (one["code"], one["title"])
        for one in found["findings"]
        if one["code"] in ("PROVIDER-401", "PROVIDER-DOWN", "CFG-LOCAL-MODEL")
    ]
    return titles, found["states"]["model"][0]["text"], found["summary"]["headline"]


def test_the_fallback_is_not_the_main_model(home: Path) -> None:
    """The main model refuses the key, and nothing listens at the fallback's address."""
    titles, state, headline = judged(home, refused(10), *down(9.9, SPARE, "spare"), given_up(9.5))

    closed = "fallback: the model server at 127.0.0.1:7002 does not answer"
    assert sorted(titles) == [
        ("CFG-LOCAL-MODEL", closed),
        ("PROVIDER-401", "custom rejects the key or login"),
    ]
    assert state == "custom, thinker: key rejected; fallback custom, spare: " + DOWN
    assert "custom rejects the key or login (1 of" in headline


def test_both_servers_are_down(home: Path) -> None:
    """The main one is named, although the lines about the fallback are newer."""
    titles, state, _ = judged(
        home, *down(10, MAIN, "thinker"), *down(9.9, SPARE, "spare"), given_up(9.5)
    )

    assert titles == [("CFG-LOCAL-MODEL", "the model server at 127.0.0.1:7001 does not answer")]
    assert state == f"custom, thinker: {DOWN}"


def test_only_the_fallback_is_known_to_be_down(home: Path) -> None:
    """The line about the model does not say it of the main one."""
    titles, state, _ = judged(home, *down(9.9, SPARE, "spare"), given_up(9.5))

    assert [title for _, title in titles] == [
        "fallback: the model server at 127.0.0.1:7002 does not answer"
    ]
    assert state == f"custom, thinker; fallback custom, spare: {DOWN}"


def test_a_server_that_is_not_set_any_more(home: Path) -> None:
    """The settings were changed since: the finding is as the line says."""
    titles, state, _ = judged(home, *down(9.9, "http://127.0.0.1:7003/v1", "old"), given_up(9.5))

    assert titles == [("CFG-LOCAL-MODEL", "the model server at 127.0.0.1:7003 does not answer")]
    assert state == f"custom, thinker: {DOWN}"
