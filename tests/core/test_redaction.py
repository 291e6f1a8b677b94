"""What may be shown of a file: shape yes, secrets no."""

from __future__ import annotations

import re

import pytest

from hermes_doctor.core import redaction, setting_lines

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
    '"api_key": "canary",',
    "canary",
    "123456:canary",
    "url: https://user:canary@host/",
    "https://user:canary@host/",
    "default: sk-canary",
    "model: ghp_canarycanary",
    "key_env: xoxb-canary",
    "default: sk-canary # x",
    "\ufeffTOKEN=canary",
    "<<<<<<< canary",
    "! canary",
    "a: !canary x",
    "a: &canary x",
    "a: @canary",
    "a: 'canary",
    "? canary",
    "# api_key: canary",
    "# the password is canary",
    "#canary1",
    "token: a  # canary",
    "model: {provider: a, api_key: canary}",
    "args: [--api-key, canary]",
    "botToken: canary",
    "DATABASE_URL=https://me:canary@host/db",
    "SMTP_PASS=canary",
    "SOME_VARIABLE=canary",
    "webhook_url: https://hooks.example/canary",
    "command: mysql -pcanary",
    "note: use sk-canary12 here",
    "creds: canary",
    "wifi_psk: canary",
    "api: canary",
    "aliyun_sk: canary",
    "notes: my password is canary",
    "server: me:canary@mail.example.com",
]


@pytest.mark.parametrize("text", SECRET)
def test_values_are_hidden(text: str) -> None:
    """Nothing that could be a secret passes."""
    assert "canary" not in setting_lines.redact_line(text)
    shown = setting_lines.redact_line(text)
    assert re.search(r"\(\d+-character \w+\)", shown)


def test_a_comment_about_a_secret_hides_itself_and_not_the_value() -> None:
    """A plan that hides both models tells nothing."""
    assert (
        setting_lines.redact_line("  default: openkey/gpt-4o  # my token")
        == "  default: openkey/gpt-4o  # (8-character comment)"
    )


FILE = """\
# My bot; ask Bob
model:
  provider: "openrouter"  # since May
  default: acme/test-model
platforms:
  weixin:
    dm_policy: open
    extra:
      nick: it's me
      welcome: "Hello there, friend"
  qq:
    dm_policy: pairing
fallback_providers:
- {provider: openrouter, model: acme/spare-model}
- provider: nous  # free
  model: hermes-4
toolsets:
- web
- 'browser'  # slow
plugins: {disabled: [irc]}
mcp_servers:
  files:
    enabled: true
proxy: http://127.0.0.1:3128
after: 17
"""


def test_a_file_without_secrets_is_shown_line_by_line() -> None:
    """Whoever agrees to a change must see it; a comment or a quote hides no line after it."""
    lines = FILE.splitlines()
    assert setting_lines.redact_lines(lines) == lines


@pytest.mark.parametrize(
    "heading", ["api_keys:", "env:", "    headers:", "args:", '"pool_keys": {']
)
def test_everything_below_the_name_of_a_secret_is_hidden(heading: str) -> None:
    """Also what has a harmless name there, and lists at the indent of their heading."""
    indent = heading[: len(heading) - len(heading.lstrip())]
    texts = [heading, f"{indent}- canary", f"{indent}  name: canary", "after: shown"]

    shown = setting_lines.redact_lines(texts)

    assert "canary" not in str(shown)
    assert shown[-1] == "after: shown"


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

    assert secret not in setting_lines.redact_line(text)


@pytest.mark.parametrize(
    "text",
    ["SUDO_PASSWORD=123456", "password: 123456", "pin: 0420", "WEBHOOK_SECRET=777", "api_key: 42"],
)
def test_numbers_of_secret_names(text: str) -> None:
    """A password may be a number: a name that speaks of a secret hides it too."""
    number = "".join(char for char in text if char.isdigit())

    assert number not in setting_lines.redact_line(text)


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
    assert setting_lines.redact_line(text) == text


def test_marks() -> None:
    """Invisible things that matter are made visible."""
    assert setting_lines.redact_line("\ufeffMAX_TURNS=1") == "<BOM>MAX_TURNS=1"
    assert setting_lines.redact_line("\tdefault: x") == "<TAB>default: x"


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\r", "\n", "\x00", "\u202e", "\u2028", "\ud800"])
def test_clean(char: str) -> None:
    """Nothing that steers a terminal passes."""
    assert redaction.clean(f"a{char}[31mb") == "a�[31mb"
    assert redaction.clean("中文 é 😀") == "中文 é 😀"


def test_escape_in_a_line() -> None:
    """Also not from a settings file."""
    assert "\x1b" not in setting_lines.redact_line("provider: \x1b[31mred")


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
    assert setting_lines.redact_line(text) == text


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
    assert "canary" not in setting_lines.redact_line(text)


def test_a_list_of_people_line_by_line() -> None:
    """Entries of that list alone."""
    texts = ["allow_from:", "  - '7001'", "  - 42", "  - sk-canary1234567", "tokens:", "  - 42"]

    shown = setting_lines.redact_lines(texts)

    assert shown[:3] == texts[:3]
    assert shown[3] == "  - (16-character value)"
    assert "42" not in shown[5]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("OPENROUTER_API_KEY=sk-or-v1-0123", "OPENROUTER_API_KEY=(13-character key)"),
        ("TELEGRAM_BOT_TOKEN=12345:abc", "TELEGRAM_BOT_TOKEN=(9-character token)"),
        ('QQ_CLIENT_SECRET="abcdef"', 'QQ_CLIENT_SECRET="(6-character secret)"'),
        ('"api_key": "abcdef",', '"api_key": "(6-character key)",'),
        ("PROXY=http://me:pw@host  # mine", "PROXY=(17-character value)  # (4-character comment)"),
        ("# a token", "# (7-character comment)"),
        ("# DEEPSEEK_API_KEY=sk-0123456789abcdef", "# DEEPSEEK_API_KEY=(19-character key)"),
        ("#MINE=sk-0123456789abcdef", "# MINE=(19-character value)"),
        ("<<<<<<< HEAD", "<<<<<<< (4-character name)"),
        ("=======", "======="),
        ("<<<<<<", "(6-character line)"),
    ],
)
def test_a_hidden_value_says_what_it_is(text: str, shown: str) -> None:
    """The operator learns the length and the kind, which often shows the mistake."""
    assert setting_lines.redact_line(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "fallback_providers: []",
        "providers: {}",
        "TOKEN=",
        'TOKEN=""',
        "  - ''",
        "conversation_compression:",
        "QQ_ALLOWED_USERS=E4F4AEA33253A2797FB897C50B81D7ED",
        "WEIXIN_ALLOWED_USERS=o9cq800kum_4g8Py8Qw5G0aBcDeF@im.wechat",
        "FEISHU_ALLOWED_USERS=ou_0123456789abcdef0123456789abcdef",
        "SLACK_ALLOWED_USERS=U0123ABCDEF",
        "TELEGRAM_HOME_CHANNEL=-1001234567890",
        "    chat_id: 123456789012345678",
    ],
)
def test_names_punctuation_and_ids_are_shown(text: str) -> None:
    """What is empty, a name or the id of a chat is not a secret."""
    assert setting_lines.redact_line(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "QQ Bot token response missing access_token: {'code': 100016, 'message': 'invalid appid'}",
        "invalid_api_key: 401 Unauthorized",
        "token: expired",
        "api_key: Field required",
        "max_tokens=4096 is above the limit",
        "https://api.example.com/v1?timeout=30&limit=100 timed out",
        "keyboard: interrupted",
        "Unauthorized user: o9cq800kum_4g8Py8Qw5G0aBcDeFgH@im.wechat (Li) on weixin",
        "Unauthorized user: E4F4AEA33253A2797FB897C50B81D7ED on qqbot",
        "TELEGRAM_BOT_TOKEN = ''",
        "Failed to get QQ Bot access token: [Errno -2] Name or service not known",
        "Failed to get QQ Bot access token: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify",
        "Failed to get QQ Bot access token: Cannot connect to host bots.qq.com:443 ssl:default",
        "Failed to get QQ Bot access token: All connection attempts failed",
        "Failed to get QQ Bot access token: Server error '502 Bad Gateway' for url",
        "Failed to get QQ Bot access token: timed out",
        "Failed to get QQ Bot access token: httpx.ConnectTimeout: ConnectTimeout('')",
        "no token: bots.qq.com:443 does not answer",
        "no token: 10.0.0.1:8443, ECONNREFUSED",
        "no API key: EAI_AGAIN, 10.0.0.1",
        "wrong password: 401 Unauthorized",
        "token: (44-character token)",
    ],
)
def test_the_words_of_an_error_are_shown(text: str) -> None:
    """Codes, punctuation and words of an error are not secret, also behind a word like token."""
    assert redaction.redact_log_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=123456", "password=(6-character password)"),
        ("the token: hunter22.", "the token: (8-character token)."),
        ("tokens: ['hunter22']", "tokens: ['(8-character token)']"),
        ("password: HUNTER_TWO", "password: (10-character password)"),
        ("secret: hunter.local", "secret: (12-character secret)"),
        ("Authorization: Bearer abcdef.ghijkl", "Authorization: Bearer (13-character value)"),
        ("key sk-proj-abcdef123456 was refused", "key (20-character key) was refused"),
        ("{'api_key': 'hunter2hunter2'}", "{'api_key': '(14-character key)'}"),
        ("https://bot:hunter2@api.example.com", "https://(11-character login)@api.example.com"),
        (
            "x.example/v1?access_token=abcdef&x=1",
            "x.example/v1?access_token=(6-character token)&x=1",
        ),
    ],
)
def test_a_secret_in_a_log_says_what_it_is(text: str, shown: str) -> None:
    """The rest of the line stays as it is."""
    assert redaction.redact_log_text(text) == shown


def test_ids_among_words() -> None:
    """The id of a chat is shown also where words that look like a key are hidden."""
    text = "discord:123456789012345678 and user E4F4AEA33253A2797FB897C50B81D7ED"
    assert redaction.redact_words(text) == text
    assert "E4F4" not in redaction.redact_words("with E4F4AEA33253A2797FB897C50B81D7ED")
    assert redaction.redact_words("a1b2c3d4e5f6a7b8c9") == "(18-character key)"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("WEIXIN_DM_POLICY=pairing", "WEIXIN_DM_POLICY=pairing"),
        ("  group_policy: open", "  group_policy: open"),
        ("WEIXIN_DM_POLICY=sk-abcdef0123456789abcd", "WEIXIN_DM_POLICY=(23-character value)"),
        ("- a", "- (1-character line)"),
        ("  - hunter2hunter2", "  - (14-character line)"),
    ],
)
def test_faults_stay_visible(line: str, shown: str) -> None:
    """A policy is one of a few words, and the dash of a list is no secret."""
    assert setting_lines.redact_line(line) == shown


def test_an_answer_is_not_a_secret() -> None:
    """A structure after the word token is shown; a value in it is still redacted."""
    answer = "response missing access_token: {'code': 100016, 'message': 'invalid appid'}"
    assert redaction.redact_log_text(answer) == answer
    for secret in ("token: {'token': 'abcdef123456'}", "token: {abc123}"):
        assert "abc123" not in redaction.redact_log_text(secret)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: 0123456789ABCDEF0123456789ABCDEF",
        "x.example/v1?password=123456",
        "x.example/v1?access_token=1234",
        "WEBHOOK_SECRET=123456",
        "cookie: 12345",
        "Authorization: Bearer 123456",
        "key 0123456789abcdef0123456789abcdef.AbCdEfGh12345678 rejected",
        "using fw_3ZabCDefGH12 now",
    ],
)
def test_short_and_odd_secrets_in_logs(text: str) -> None:
    """Numbers after a name of a secret, keys with dots, and keys that look like an id of QQ."""
    shown = redaction.redact_log_text(text)

    assert "-character" in shown
    assert not any(part in shown for part in ("0123456789", "12345", "1234", "3ZabCD"))


def test_the_words_of_an_exception_are_shown() -> None:
    """`KeyError` is not a name for a key."""
    assert redaction.redact_log_text("KeyError: 'soul'") == "KeyError: 'soul'"


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("MATRIX_USER_ID=syt_Ym90_AbCdEfGhIjKl_1abcde", True),
        ("MATRIX_USER_ID=@bot:example.org", False),
        ("TELEGRAM_HOME_CHANNEL=-1001234567890", False),
        ("DISCORD_ALLOWED_USERS=somebody", False),
    ],
)
def test_ids_in_settings(line: str, hidden: bool) -> None:
    """An id is shown only if it has the form of one."""
    assert ("-character" in setting_lines.redact_line(line)) is hidden
