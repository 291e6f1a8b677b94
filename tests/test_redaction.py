"""What may be shown of a file: shape yes, secrets no."""

from __future__ import annotations

import pytest

from hermes_doctor import redaction

SECRET = [
    "OPENROUTER_API_KEY=canary",
    "export TOKEN=canary",
    "TOKEN = canary",
    'TOKEN="canary value"',
    "TOKEN='canary'  # canary",
    "api_key: canary",
    "  api_key: canary",
    "  - api_key: canary",
    "  - canary",
    "- canary: canary-value",
    '"api_key": "canary",',
    "# canary in a comment",
    "   # canary",
    "canary",
    "123456:canary",
    "url: https://user:canary@host/",
    "https://user:canary@host/",
    "default: sk-canary",
    "model: ghp_canarycanary",
    "provider: canary with words",
    "key_env: xoxb-canary",
    "model: some-model  # canary",
    "default: sk-canary # x",
    "a: {b: canary}",
    "a: [canary]",
    "\ufeffTOKEN=canary",
    "<<<<<<< canary",
    "! canary",
    "a: !canary x",
    "a: &canary x",
    "? canary",
]


@pytest.mark.parametrize("text", SECRET)
def test_values_are_hidden(text: str) -> None:
    """Nothing that could be a secret passes."""
    assert "canary" not in redaction.redact_line(text).replace("- canary: ", "")
    shown = redaction.redact_line(text)
    assert redaction.HIDDEN in shown or "-character value)" in shown


def test_a_comment_hides_itself_and_not_the_value() -> None:
    """A plan that hides both models tells nothing."""
    assert (
        redaction.redact_line("  default: openkey/gpt-4o  # mine")
        == f"  default: openkey/gpt-4o  # {redaction.HIDDEN}"
    )


LOOKS_LIKE_A_NAME = [
    "dGhpcyBpcyBhIHNlY3JldCBrZXk=",
    "dGhpcyBpcyBhIHNlY3JldCBrZQ==",
    "  MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj==",
    "sk-proj-4f9d2c7a81b34c5e:",
    "AKIAIOSFODNN7EXAMPLE=",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a: 1",
]


@pytest.mark.parametrize("text", LOOKS_LIKE_A_NAME)
def test_secrets_that_look_like_a_name(text: str) -> None:
    """A key on a line of its own (in a block of text) is not taken for a name with a value."""
    secret = text.strip().rstrip("=: 1")

    assert secret not in redaction.redact_line(text)


@pytest.mark.parametrize(
    "text",
    ["SUDO_PASSWORD=123456", "password: 123456", "pin: 0420", "WEBHOOK_SECRET=777", "api_key: 42"],
)
def test_numbers_of_secret_names(text: str) -> None:
    """A password may be a number: a name that speaks of a secret hides it too."""
    number = "".join(char for char in text if char.isdigit())

    assert number not in redaction.redact_line(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "model:",
        "  - name:",
        "enabled: true",
        "timeout: 30",
        "ratio: 0.5",
        "provider: openrouter",
        "default: nousresearch/hermes-4-70b",
        "timezone: Asia/Shanghai",
        "context_length: 131072",
        "  - provider: nous",
        "empty: null",
    ],
)
def test_shape_is_shown(text: str) -> None:
    """What cannot be a secret is shown, so that a difference says something."""
    assert redaction.redact_line(text) == text


def test_marks() -> None:
    """Invisible things that matter are made visible."""
    assert redaction.redact_line("\ufeffMAX_TURNS=1") == "<BOM>MAX_TURNS=1"
    assert redaction.redact_line("\tdefault: x") == "<TAB>default: x"


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\r", "\n", "\x00", "\u202e", "\u2028", "\ud800"])
def test_clean(char: str) -> None:
    """Nothing that steers a terminal passes."""
    assert redaction.clean(f"a{char}[31mb") == "a�[31mb"
    assert redaction.clean("中文 é 😀") == "中文 é 😀"


def test_escape_in_a_line() -> None:
    """Also not from a settings file."""
    assert "\x1b" not in redaction.redact_line("provider: \x1b[31mred")


def test_diff() -> None:
    """Both sides are masked line by line, and the heads name the file."""
    before, after = b"port: 1\nkey: canary1\n", b"port: 2\nkey: canary2\nb: true\n"
    made = list(redaction.redacted_diff("x.yaml", before, after))

    assert [text[:10] for text in made[:2]] == ["--- x.yaml", "+++ x.yaml"]
    assert "-port: 1" in made
    assert "+port: 2" in made
    assert "+b: true" in made
    assert "canary" not in "".join(made)


def test_diff_is_bounded() -> None:
    """A long difference ends with how much more there is."""
    made = list(redaction.redacted_diff("x", b"", b"a: 1\n" * 1000))

    assert len(made) == redaction.MOST_LINES + 1
    assert made[-1].endswith("more lines")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"\0" * 10, b"\x85\xe2\x80\xa8\n", "x\x0cy\x1cz\u2028w".encode()]
)
def test_diff_of_any_bytes(data: bytes) -> None:
    """Whatever the bytes are, each row of the difference is one line."""
    for text in redaction.redacted_diff("x", data, b"a: 1\n"):
        assert text == redaction.clean(text)


def test_text_over_several_lines() -> None:
    """Blocks and quoted runs may hold anything, names and numbers included."""
    text = "a: |\n  canary.one: true\n\n  port: 4242\nb: 'canary\n  port: 7'\nport: 8\n"
    made = "\n".join(redaction.redacted_diff("x.yaml", b"", text.encode()))

    assert "canary" not in made
    assert "4242" not in made
    assert "port: 7" not in made
    assert "+port: 8" in made


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Client error for url 'https://bot:hunter2@api.example.com/x'", "hunter2"),
        ("at https://bot:hun/ter2@api.example.com/x", "ter2"),
        ("https://hooks.example/services/T0/B0/n3VqP0sKxT7rYbW2mZ8cLdF5h", "n3VqP0sKxT7r"),
        ("url=https://mcp.example/9f86d081884c7d659a2feaa0c55ad015/sse", "9f86d081884c"),
        ("https://x.example/0f86d081884c7d659/a/n3VqP0sKxT7rYbW2mZ8c, then", "n3VqP0sKxT7r"),
        ("GET https://api.example.com/v1?access_token=abcdef&x=1", "abcdef"),
        ("Authorization: Bearer abcdef.ghijkl", "abcdef.ghijkl"),
        ("{'api_key': 'hunter2hunter2'}", "hunter2hunter2"),
        ('{"client_secret":"hunter2"}', "hunter2"),
        ("password=hunter2", "hunter2"),
        ("key sk-proj-abcdef123456", "sk-proj-abcdef123456"),
        ("xoxb-123456-abcdef", "xoxb-123456-abcdef"),
        ("/bot123456789:AAEhBP0av28fW3xQ9sJx2nCy8wT4vE7rK1M/getMe", "AAEhBP0av28"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJhbGciOiJI"),
        ("token Zx81kQpL0aV7mNc3TgYhRs5WdEuJ92bF was refused", "Zx81kQpL0a"),
        ("refused: Zx81kQpL0aV7mNc3TgYhRs5WdEuJ92bF. Try again", "Zx81kQpL0a"),
    ],
)
def test_what_a_log_says(text: str, secret: str) -> None:
    """Nothing with the look of a secret is shown, wherever it stands in a sentence."""
    assert secret not in redaction.redact_log_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "[QQBot:102000001] WebSocket closed: code=4009 reason=Session timed out",
        "Rejected unauthorized approval click for session agent:main:qqbot:dm:USER1",
        "sqlite3.DatabaseError: database disk image is malformed",
        "✗ telegram failed to connect: timed out after 30s",
        "/home/user/.hermes/state.db: locked by process 12345",
        "/home/op/.hermes/kanban.db.corrupt.0123456789abcdef.bak",
        "http://127.0.0.1:8000/v1/chat/completions timed out",
        "connected to wss://msg-frontier.feishu.cn/ws/v2",
        "openrouter/anthropic/claude-opus-4.5 is not a valid model ID",
    ],
)
def test_what_a_log_says_in_the_clear(text: str) -> None:
    """What an operator needs stays readable."""
    assert redaction.redact_log_text(text) == text


PEOPLE = [
    "TELEGRAM_ALLOWED_USERS=7001,42",
    "DISCORD_ALLOWED_USERS=123456789012345678, 222222222222222222",
    'GATEWAY_ALLOWED_USERS="7001, me@example.com"',
    "  allow_from: [7001, '42']",
    "    base_url: https://relay.example/v1",
    "OPENAI_BASE_URL=http://127.0.0.1:8000/v1",
]


@pytest.mark.parametrize("text", PEOPLE)
def test_who_is_let_in_and_where_messages_go(text: str) -> None:
    """The operator agrees to ids and addresses, so they are shown."""
    assert redaction.redact_line(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "TELEGRAM_ALLOWED_USERS=7001,zQcanaryKx9pLm2Tw",
        "TELEGRAM_ALLOWED_USERS=123456:AAcanaryzQKx9pLm2TwAAcanary",
        "base_url: https://bob:canary@relay.example/v1",
        "base_url: https://relay.example/v1?key=canary",
        "base_url: sk-canary",
    ],
)
def test_secrets_among_them(text: str) -> None:
    """A token in the wrong place, and what is secret of an address, stay hidden."""
    assert "canary" not in redaction.redact_line(text)


def test_a_list_of_people_line_by_line() -> None:
    """Entries of that list alone."""
    texts = ["allow_from:", "  - '7001'", "  - 42", "  - sk-canary1234567", "other:", "  - 42"]

    shown = redaction.redact_lines(texts)

    assert shown[:3] == texts[:3]
    assert shown[3] == f"  - {redaction.HIDDEN}"
    assert "42" not in shown[5]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("WEIXIN_DM_POLICY=pairing", "WEIXIN_DM_POLICY=pairing"),
        ("  group_policy: open", "  group_policy: open"),
        ("WEIXIN_DM_POLICY=sk-abcdef0123456789abcd", f"WEIXIN_DM_POLICY={redaction.HIDDEN}"),
        ("- a", f"- {redaction.HIDDEN}"),
        ("  - hunter2hunter2", f"  - {redaction.HIDDEN}"),
    ],
)
def test_faults_stay_visible(line: str, shown: str) -> None:
    """A policy is one of a few words, and the dash of a list is no secret."""
    assert redaction.redact_line(line) == shown


def test_an_answer_is_not_a_secret() -> None:
    """A structure after the word token is shown; a value in it is still redacted."""
    answer = "response missing access_token: {'code': 100016, 'message': 'invalid appid'}"
    assert redaction.redact_log_text(answer) == answer
    for secret in ("token: {'token': 'abcdef123456'}", "token: {abc123}"):
        assert "abc123" not in redaction.redact_log_text(secret)
