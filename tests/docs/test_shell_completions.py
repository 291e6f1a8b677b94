"""Real shells complete every command, option and value, and start no program for that."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hermes_doctor.cli.check_run import FORMATS
from tests.helpers import shells
from tools.share import command_tree, files
from tools.share.command_tree import NAMES, Command

Shell = Callable[[Sequence[str], Path, str], list[set[str]]]
SHELLS = [
    pytest.param(shells.bash, id="bash"),
    pytest.param(shells.zsh, id="zsh", marks=pytest.mark.needs("zsh")),
    pytest.param(shells.fish, id="fish", marks=pytest.mark.needs("fish")),
]
every_shell = pytest.mark.parametrize("shell", SHELLS)


@functools.cache
def tree() -> Command:
    """The commands; they are read once."""
    return command_tree.read()


def commands() -> Iterator[Command]:
    """The program and all its commands."""
    return tree().walk()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file and folders to complete. Completing starts no program of ours."""
    (tmp_path / "some folder").mkdir()
    (tmp_path / "seen").mkdir()
    (tmp_path / "sums.txt").touch()
    yield tmp_path
    assert not (tmp_path / "started").exists()


@pytest.mark.sampled
@every_shell
@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option(shell: Shell, name: str, folder: Path) -> None:
    """At each command, the commands below it and its options are offered, under both names."""
    starts = [" ".join((name, *one.path)) for one in commands()]
    below = shell([f"{start} " for start in starts], folder, name)
    options = shell([f"{start} --" for start in starts], folder, name)

    for command, words, flags in zip(commands(), below, options, strict=True):
        if command.commands:
            wanted = {one.path[-1] for one in command.commands}
            offered = words & wanted if command.arguments else words  # codes may come with them
            assert offered == wanted, command.path
        long = {n for one in command.options for n in one.names if n.startswith("--")}
        assert {one.rstrip("=") for one in flags} == long, command.path


@pytest.mark.sampled
@every_shell
def test_values(shell: Shell, folder: Path) -> None:
    """Words of a choice, codes, folders and files, as the option takes them."""
    files, folders = {"seen", "some folder", "sums.txt"}, {"seen", "some folder"}
    wanted: dict[str, set[str]] = {
        "check --format ": {*FORMATS},
        "check --format j": {"json", "junit"},
        "check --home x --json --format n": {"nagios"},
        "check --fail-on ": {"critical", "error", "warning", "info"},
        "explain DB-NOT": {"DB-NOTADB"},
        "fix ENV-BOM DB-NOT": {"DB-NOTADB"},
        "check --only DB-NOT": {"DB-NOTADB"},
        "list ": {"checks", "codes", "fixes"},
        "probe --home x ": {"live", "ready", "started"},
        "hook run p": {"pre-update", "post-update"},
        "backup restore ID we": {"webhooks", "weixin"},
        "switch-provider new --api-mode a": {"anthropic_messages"},
        "backup schedule ": {"install", "status", "remove"},
        "watch --interval 5m ": {"install", "status", "remove"},
        "history QQ-TO": {"QQ-TOKEN"},
        "history pru": {"prune"},
        "history --since 30d QQ-TO": {"QQ-TOKEN"},
        "history QQ-TOKEN --h": {"--help", "--home"},
        "history QQ-TOKEN --since 30d --j": {"--json"},
        "history QQ-TOKEN --home s": folders,
        "history prune --k": {"--keep"},
        "update-guard --home x -- unam": {"uname"},
        "update-guard -- cat su": {"sums.txt"},
        "check -- s": set(),
        "check --home s": folders,
        "check --output s": files,
    }
    found = shell([f"hermes-doctor {line}" for line in wanted], folder, NAMES[0])

    for line, words in zip(wanted, found, strict=True):
        assert {word.rstrip("/=").replace("\\", "") for word in words} == wanted[line], line


@pytest.mark.sampled
@every_shell
def test_runs(shell: Shell, folder: Path) -> None:
    """`undo` offers the runs of the home that was typed before it."""
    for id in ("20261118-201404-770b8", "20261117-201404-770b9"):
        (folder / "bot" / "backups" / "doctor" / "runs" / id).mkdir(parents=True)
    lines = ["undo --home bot ", "undo --home bot 20261118", "undo --home seen "]

    every, one, none = shell([f"hermes-doctor {line}" for line in lines], folder, NAMES[0])

    assert {word for word in every if word[0] == "2"} == {
        "20261118-201404-770b8",
        "20261117-201404-770b9",
    }
    assert one == {"20261118-201404-770b8"}
    assert {word for word in none if word[0] == "2"} == set()


@pytest.mark.sampled
@every_shell
def test_group_with_an_argument(shell: Shell, folder: Path) -> None:
    """At `history`, its commands and all codes are offered; after a code, only options."""
    (history,) = (one for one in commands() if one.path == ("history",))
    options = {name for one in history.options for name in one.names if name.startswith("--")}
    lines = ["hermes-doctor history ", "hermes-doctor history QQ-TOKEN --"]
    first, second = shell(lines, folder, NAMES[0])

    assert first == {"prune", *history.arguments[0].value.words}
    assert {one.rstrip("=") for one in second} == options


def test_options_that_switch_off() -> None:
    """The menus say of `--no-…` that it switches off, and do not repeat the other text."""
    (watch,) = (one for one in commands() if one.path == ("watch", "install"))
    (heal,) = (one for one in watch.options if "--heal" in one.names)
    made = files.files()
    zsh = made["zsh/site-functions/_hermes-doctor"]
    fish = made["fish/vendor_completions.d/hermes-doctor.fish"]

    assert heal.summary_of("--no-heal") == "Switch off --heal"
    assert "--heal[Apply safe fixes" in zsh
    assert "--no-heal[Switch off --heal]" in zsh
    assert "--no-network[Switch off --network]" in zsh
    assert " -l heal -d 'Apply safe fixes" in fish
    assert " -l no-heal -d 'Switch off --heal'" in fish
    assert " -l no-network -d 'Switch off --network'" in fish


@pytest.mark.needs("zsh")
def test_zsh_does_not_ask(folder: Path) -> None:
    """The options of `watch install` fit on a terminal: no two have the same text."""
    with shells.Terminal(["/usr/bin/zsh", "-f", "-i"], folder, NAMES[0], PROMPT="") as terminal:
        terminal.type("fpath=($SHARE/zsh/site-functions $fpath); autoload -Uz compinit\n")
        terminal.type("compinit -D -u; echo rea''dy\n")
        terminal.wait(functools.partial(_is_shown, terminal, b"ready"))
        terminal.type("hermes-doctor watch install --\t")
        terminal.wait(functools.partial(_is_shown, terminal, b"Switch off --network"))

    assert b"do you wish" not in terminal.seen


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check --format=j", {"json", "junit"}),
        ("check --format=", {*FORMATS}),
        ("check --json --home=se", {"seen"}),
        ("undo ", set()),
        ("check extra ", set()),
        ("check --since ", set()),
        ("update-guard -- ca", {"cat", "case", "caller"}),
        ("update-guard -- cat se", {"seen"}),
        ("check -- ca", set()),
    ],
)
def test_bash(line: str, words: set[str], folder: Path) -> None:
    """Values after "=", commands after "--", and nothing where nothing is known."""
    assert shells.bash([f"hermes-doctor {line}"], folder) == [words]


def test_bash_in_a_terminal(folder: Path) -> None:
    """Typed keys become whole words, also of a folder with a space, and of one below the home."""
    typed = {
        "hermes-doctor ba\tcr\t--ho\tsome\t": rb"hermes-doctor backup create --home some\ folder/",
        "hermes-doctor check --home ~/se\t": b"hermes-doctor check --home ~/seen/",
        "hermes-gateway-doctor explain DB-NOTA\t": b"hermes-gateway-doctor explain DB-NOTADB ",
    }
    with shells.Terminal(["/bin/bash", "--norc", "-i"], folder, NAMES[0], PS1="") as terminal:
        for name in NAMES:
            terminal.type(f". {shells.share()}/bash-completion/completions/{name}\n")
        for keys, shown in typed.items():
            terminal.type(keys)
            terminal.wait(functools.partial(_is_shown, terminal, shown))
            terminal.type("\x15")
            terminal.seen = b""
        assert b"not found" not in terminal.seen


def _is_shown(terminal: shells.Terminal, text: bytes) -> bool:
    return text in terminal.seen
