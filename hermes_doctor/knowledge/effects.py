"""What each problem does to the bot: which part fails, and a few words that say how.

A problem of severity error in the part `gateway`, `model` or `access` silences the whole bot; in
the part `platform` it silences that platform. In the part `data` the bot goes on with limits.
"""

from __future__ import annotations

from functools import cache

from hermes_doctor.lazy import NamedTuple

GATEWAY, PLATFORM, MODEL, ACCESS, DATA = "gateway", "platform", "model", "access", "data"
SILENCING = (GATEWAY, MODEL, ACCESS)
"""The parts without which nobody gets an answer."""


class Effect(NamedTuple):
    """The part of the bot that a problem breaks, and how, in a few words."""

    part: str
    words: str


_TABLE = """
AUTHZ-NO-LISTS        access    nobody may write to the bot
AUTHZ-OPEN-REFUSE     gateway   refuses to start with open access
CFG-BASE-URL          model     wrong address
CFG-CONTEXT-LENGTH    model     context window too small
CFG-IGNORED           platform  its settings are ignored
CFG-KEY-ENV           model     key is not read
CFG-LOCAL-MODEL       model     local server does not answer
CFG-LOOKALIKE         model     odd characters in config.yaml
CFG-MODEL             model     no usable model name
CFG-MODEL-PREFIX      model     wrong model name
CFG-PROVIDER-LEFT     model     wrong provider
CFG-PROVIDERS-SHAPE   model     provider entry is not read
CFG-PROVIDER-UNKNOWN  model     unknown provider
CFG-UNRESOLVED        model     a variable is not filled in
CFG-YAML              model     config.yaml cannot be read
CRED-POOL-STALE       model     stored keys are used up
CRED-SHAPE            model     key is damaged
CRON-JOBS-CORRUPT     data      list of scheduled jobs is damaged
CRON-NO-GATEWAY       data      scheduled jobs do not run
CRON-TICKER-DEAD      data      scheduled jobs do not run
DB-DISKIO             data      the disk refuses reads or writes
DB-EMPTY              data      a database is empty
DB-GONE               data      a database is missing
DB-INDEX              data      index damaged
DB-LOCKED             data      a database is locked
DB-MALFORMED          data      a database is damaged
DB-NOTADB             data      a database cannot be opened
DB-OWNER              data      a database cannot be written
DB-SCHEMA             data      a database lacks columns
DB-TRUNCATED          data      a database is incomplete
DB-WAL-BROKEN         data      a write-ahead log is damaged
DB-WAL-STALE          data      a wrong write-ahead log
DC-BAD-TOKEN          platform  login rejected
DC-CONNECT-TIMEOUT    platform  does not connect
DC-INTENTS            platform  intents are switched off
DC-ZOMBIE             platform  adapter has died
DING-DEPS             platform  library does not fit
DING-STREAM           platform  does not connect
DISK-FULL             data      disk full
DOCKER-S6-DOWN        gateway   down inside its container
EMAIL-IMAP            platform  mail cannot be fetched
ENV-AMBIGUOUS         model     key is read wrongly
ENV-BLANK             platform  a variable is erased
ENV-BOM               platform  .env is not read correctly
ENV-DUP               platform  a variable is erased
ENV-LINE              platform  a line of .env is not read
ENV-PORT              platform  invalid port
ENV-REDACTED          model     masked text instead of a key
FEISHU-CRASH          platform  connection crashed
FEISHU-WS-DEAD        platform  connection is dead
GW-AGENT-HUNG         gateway   answers hang
GW-API-KEY-MISSING    platform  no key that is strong enough
GW-CLEAN-EXIT-DEAD    gateway   ended and was not restarted
GW-CRASH-LOOP         gateway   crashes at every start
GW-DIED               gateway   died
GW-DOWN               gateway   not running
GW-DRAIN-HANG         gateway   hangs while stopping
GW-EXIT75-LOOP        gateway   restarts over and over
GW-EXIT78             gateway   refuses its settings
GW-FD-EXHAUST         gateway   out of file descriptors
GW-HOME-MISMATCH      gateway   the service uses another home
GW-LAUNCHD-EIO        gateway   launchd has not loaded it
GW-LOOP-BLOCKED       gateway   frozen
GW-OOM                gateway   killed: out of memory
GW-PORT-IN-USE        platform  its port is in use
GW-STARTLIMIT         gateway   systemd has given up
GW-SUSPENDED          gateway   suspended
GW-TASK-DEAD          gateway   a part of it has died
GW-UNIT-BAD-PATH      gateway   the service starts a missing program
GW-UNIT-FAILED        gateway   the service failed
KANBAN-CORRUPT        data      a kanban board is damaged
KANBAN-SCHEMA         data      kanban lacks columns
MATRIX-E2EE           platform  cannot encrypt
MATRIX-SYNC           platform  cannot fetch messages
MATRIX-TOKEN          platform  login rejected
NET-SLEEP-WAKE        platform  connection is dead
PAIRING-CORRUPT       access    the list of approved users is damaged
PLATFORM-CREDENTIALS  platform  no usable login
PLATFORM-DEAF         platform  no connection
PLATFORM-DEPS         platform  a library is missing
PLATFORM-DOWN         platform  not connected
PLATFORM-NONE         gateway   no platform is connected
PLATFORM-PAUSED       platform  switched off by the gateway
PLATFORM-POLICY       platform  invalid access policy
PLATFORM-PORT-CLASH   platform  its port is used twice
PLATFORM-STOPPED      platform  stopped
PLATFORM-TIMEOUT      platform  does not connect in time
PLUGIN-NOT-REGISTERED platform  unknown to Hermes
PROVIDER-401          model     key rejected
PROVIDER-402-429      model     no credit or too many requests
PROVIDER-403          model     request refused
PROVIDER-DOWN         model     cannot be reached
PROVIDER-KEY          model     no key
QQ-4004               platform  access token rejected
QQ-4009               platform  session ended
QQ-FATAL-CLOSE        platform  QQ shut the bot out
QQ-GATEWAY-401        platform  not allowed from this machine
QQ-GIVEUP             platform  stopped trying to connect
QQ-IS-RECONNECT       platform  this release cannot connect
QQ-SESSION            platform  session lost
QQ-STALE-RESUME       platform  stuck on a dead session
QQ-TOKEN              platform  login rejected
REPLY-LOST            platform  answers are not delivered
REPLY-NONE            gateway   messages get no answer
SESSION-UNSAVED       data      conversations are not saved
SIGNAL-DAEMON         platform  signal-cli does not answer
SIGNAL-SSE-STALE      platform  connection is dead
SLACK-SCOPES          platform  a permission is missing
SLACK-TOKEN           platform  login rejected
SLACK-ZOMBIE          platform  connection is dead
SSL-CA                gateway   certificates are missing
STORE-CORRUPT         data      a file is damaged
TG-409                platform  another program uses this bot
TG-BAD-TOKEN          platform  login rejected
TG-CONNECT-HANG       platform  does not connect
TG-NETWORK            platform  cannot be reached
TG-POLL-STALL         platform  fetches no messages
TG-POOL-EXHAUST       platform  out of connections
TOKEN-DUP             platform  two gateways use this bot
TOKEN-SHAPE           platform  token is not valid
UPD-CONFLICT-MARKERS  gateway   Hermes' code is half merged
UPD-VENV-BROKEN       gateway   Hermes cannot start
WA-BRIDGE             platform  bridge does not run
WA-CLOUD-SETUP        platform  setup incomplete
WA-NO-BRIDGE          platform  bridge is not installed
WA-NOT-PAIRED         platform  not paired with a phone
WEBHOOK-SECRET        platform  no webhook secret
WECOM-846609          platform  not subscribed
WECOM-CREDENTIALS     platform  login rejected
WECOM-WS-DEAD         platform  connection is dead
WX-POLL-ERROR         platform  cannot fetch messages
WX-QR-LOGIN           platform  not logged in
WX-SESSION-EXPIRED    platform  login expired
WX-ZOMBIE-POLL        platform  fetches no messages
YUANBAO-AUTH          platform  login rejected
YUANBAO-CLOSE         platform  connection is gone
"""


@cache
def effects() -> dict[str, Effect]:
    """The effect of each code; a code that is not listed breaks none of these parts."""
    rows = (line.split(None, 2) for line in _TABLE.strip().splitlines())
    return {code: Effect(part, words) for code, part, words in rows}
