# Completion of hermes-doctor for fish. Written by `make share`; do not edit.

# Prints the command that the words before the cursor lead to, the number of its arguments so far,
# and whether `--` was there.
function __hermes_doctor_place
    set -l at
    set -l count 0
    set -l skip 0
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if test "$word" = --
            printf '%s\n' "$at" $count foreign
            return
        else if string match -q -- '-*' $word
            contains -- "$at $word" $__hermes_doctor_values; and set skip 1
        else if contains -- (string trim -- "$at $word") $__hermes_doctor_commands
            set at (string trim -- "$at $word")
            set count 0
        else
            set count (math $count + 1)
        end
    end
    printf '%s\n' "$at" $count own
end

# Succeeds at this command, and at this argument of it if there is a number.
function __hermes_doctor_at
    set -l place (__hermes_doctor_place)
    test "$place[3]" = own; and test "$place[1]" = "$argv[1]"; or return 1
    test (count $argv) -lt 2; or test "$place[2]" = "$argv[2]"
end

# Succeeds after the `--` of this command.
function __hermes_doctor_after
    set -l place (__hermes_doctor_place)
    test "$place[3]" = foreign; and test "$place[1]" = "$argv[1]"
end

# Prints the runs of the home.
function __hermes_doctor_runs
    set -l home $HERMES_HOME
    test -n "$home"; or set home $HOME/.hermes
    set -l words (commandline -opc)
    set -l at (contains -i -- --home $words)
    and set home (string replace -r '^~' $HOME -- $words[(math $at + 1)])
    for path in $home/backups/doctor/runs/*/
        string replace -r '.*/([^/]+)/$' '$1' -- $path
    end
end

# Completes the command after `--`.
function __hermes_doctor_foreign
    set -l words (commandline -opc)
    set -l start (math (contains -i -- -- $words) + 1)
    complete -C (string join ' ' -- (string escape -- $words[$start..-1]) (commandline -ct))
end

set -g __hermes_doctor_commands 'check' 'timeline' 'config' 'ask' 'learn' 'fix' 'undo' 'switch-provider' 'update-guard' 'rollback' 'mute' 'unmute' 'mutes' 'probe' 'explain' 'list' 'settings' 'demo' 'history' 'history prune' 'backup' 'backup create' 'backup list' 'backup verify' 'backup restore' 'backup prune' 'backup export' 'backup push' 'backup pull' 'backup schedule' 'backup schedule install' 'backup schedule status' 'backup schedule remove' 'hook' 'hook install' 'hook remove' 'hook status' 'hook run' 'watch' 'watch install' 'watch status' 'watch remove'
set -g __hermes_doctor_values 'check --home' 'check --only' 'check --skip' 'check --fail-on' 'check --plugins' 'check --format' 'check --output' 'timeline --home' 'timeline --since' 'timeline --plugins' 'config --home' 'ask --timeout' 'ask --home' 'learn --home' 'learn --timeout' 'fix --subject' 'fix --home' 'fix --plugins' 'fix --vault' 'undo --home' 'undo --plugins' 'switch-provider --base-url' 'switch-provider --key-env' 'switch-provider --model' 'switch-provider --api-mode' 'switch-provider --home' 'switch-provider --vault' 'update-guard --home' 'update-guard --vault' 'rollback --home' 'mute --for' 'mute --because' 'mute --home' 'mute --plugins' 'unmute --home' 'probe --home' 'explain --plugins' 'list --plugins' 'settings --home' 'history --home' 'history --since' 'history prune --home' 'history prune --keep' 'backup create --home' 'backup create --vault' 'backup create --reason' 'backup create --include' 'backup create --exclude' 'backup create --to' 'backup create --encrypt-to' 'backup create --passphrase-file' 'backup create --daily' 'backup create --weekly' 'backup create --monthly' 'backup list --restic' 'backup list --home' 'backup list --vault' 'backup verify --identity' 'backup verify --passphrase-file' 'backup verify --home' 'backup verify --vault' 'backup restore --identity' 'backup restore --passphrase-file' 'backup restore --home' 'backup restore --vault' 'backup prune --keep' 'backup prune --older-than' 'backup prune --daily' 'backup prune --weekly' 'backup prune --monthly' 'backup prune --home' 'backup prune --vault' 'backup export --to' 'backup export --encrypt-to' 'backup export --passphrase-file' 'backup export --home' 'backup export --vault' 'backup push --restic' 'backup push --rsync' 'backup push --home' 'backup push --vault' 'backup pull --restic' 'backup pull --home' 'backup pull --vault' 'backup schedule install --at' 'backup schedule install --daily' 'backup schedule install --weekly' 'backup schedule install --monthly' 'backup schedule install --include' 'backup schedule install --exclude' 'backup schedule install --home' 'backup schedule install --vault' 'backup schedule status --home' 'backup schedule status --vault' 'backup schedule remove --home' 'hook install --home' 'hook remove --home' 'hook status --home' 'hook run --home' 'hook run --vault' 'watch --home' 'watch --interval' 'watch --also' 'watch --after' 'watch --budget' 'watch --patience' 'watch --notify-on' 'watch --notify-command' 'watch --notify-webhook' 'watch --notify-hermes' 'watch --only' 'watch --skip' 'watch --fail-on' 'watch --plugins' 'watch --vault' 'watch --metrics' 'watch --heartbeat' 'watch --heartbeat-fail' 'watch install --home' 'watch install --interval' 'watch install --also' 'watch install --after' 'watch install --budget' 'watch install --patience' 'watch install --notify-on' 'watch install --notify-command' 'watch install --notify-webhook' 'watch install --notify-hermes' 'watch install --fail-on' 'watch install --plugins' 'watch install --vault' 'watch install --metrics' 'watch install --heartbeat' 'watch install --heartbeat-fail' 'watch status --home' 'watch remove --home'
set -g __hermes_doctor_words_1 AGENT-ERROR APPROVAL-DEADLOCK APPROVAL-TIMEOUT AUTHJSON AUTHZ-API-KEY AUTHZ-APPROVAL-CLICK AUTHZ-DASHBOARD AUTHZ-EMAIL-SENDER AUTHZ-NO-LISTS AUTHZ-OPEN AUTHZ-OPEN-REFUSE AUTHZ-UNAUTHORIZED BROWSER-DEAD BROWSER-ORPHANS CFG-ALLOWLIST-KEY CFG-BASE-URL CFG-BUILTIN-NAME CFG-CONTEXT-LENGTH CFG-CWD CFG-DEPRECATED CFG-DUP-KEY CFG-FALLBACK-DEAD CFG-FALLBACK-NONE CFG-FALLBACK-STR CFG-GATEWAY-JSON CFG-IGNORED CFG-KEY-ENV CFG-LOCAL-MODEL CFG-LOOKALIKE CFG-MODEL CFG-MODEL-AUX CFG-MODEL-PREFIX CFG-PROVIDER-LEFT CFG-PROVIDER-UNKNOWN CFG-PROVIDERS-SHAPE CFG-SESSION-RESET CFG-STT CFG-TYPE CFG-UNKNOWN-KEY CFG-UNRESOLVED CFG-VERSION-OLD CFG-YAML CLOCK-STEP CRED-IN-CONFIG CRED-IN-GIT CRED-IN-LOGS CRED-POOL-STALE CRED-SHAPE CRED-STRANGER CRON-DELIVERY CRON-JOB-FAILED CRON-JOBS-CORRUPT CRON-NO-GATEWAY CRON-SCRIPT-MISSING CRON-TICKER-DEAD CRON-TZ CTX-OVERFLOW DASH-REJECTED DB-ACTIVE-NULL DB-BACKUP-CLUTTER DB-BLOAT DB-DELETED-WAL DB-DISKIO DB-EMPTY DB-FTS-CORRUPT DB-FTS-STALE DB-FTS-UNFINISHED DB-GONE DB-INDEX DB-JOURNAL DB-JOURNAL-MODE DB-JSON DB-LOCKED DB-MALFORMED DB-NETFS DB-NEWER DB-NOTADB DB-OWNER DB-REPLACED DB-SAVED-ROWS DB-SCHEMA DB-SCHEMAVERSION DB-SQLITE-WALRESET DB-TITLES DB-TRUNCATED DB-WAL-BROKEN DB-WAL-HUGE DB-WAL-ROWS DB-WAL-STALE DC-BAD-TOKEN DC-COMMAND-SYNC DC-CONNECT-TIMEOUT DC-INTENTS DC-PERMISSIONS DC-VOICE DC-ZOMBIE DING-DEPS DING-STREAM DISK-FULL DOCKER-EXEC-PATH DOCKER-LIMITS DOCKER-NO-HEALTHCHECK DOCKER-NO-RESTART DOCKER-S6-DOWN DOCKER-TZ EMAIL-IMAP ENV-AMBIGUOUS ENV-BLANK ENV-BOM ENV-DUP ENV-EXPANDS ENV-IGNORED ENV-LINE ENV-PORT ENV-REDACTED ENV-SHADOWS-CONFIG FEISHU-CRASH FEISHU-SCOPES FEISHU-WS-DEAD GW-AGENT-HUNG GW-API-KEY-MISSING GW-CLEAN-EXIT-DEAD GW-CODE-SKEW GW-CRASH-LOOP GW-DIED GW-DOWN GW-DRAIN-HANG GW-DUP-UNITS GW-DUPLICATE GW-ERRORS GW-EXIT75-LOOP GW-EXIT78 GW-FD-EXHAUST GW-FD-LIMIT-LOW GW-HOME-MISMATCH GW-LAUNCHD-EIO GW-LAUNCHD-OLD-PLIST GW-LINGER GW-LOCK-LOST GW-LOOP-BLOCKED GW-MEMORY GW-NO-USER-BUS GW-NOT-ENABLED GW-OOM GW-PORT-IN-USE GW-RESTART-FAILED GW-RESTART-SPAM GW-SELF-RESTART GW-STALE-PID GW-STALE-SETTINGS GW-STALE-UNIT GW-STARTLIMIT GW-STARTUP-SLOW GW-STUCK-RESUME GW-SUSPENDED GW-TASK-DEAD GW-UNIT-BAD-PATH GW-UNIT-FAILED GW-UNSUPERVISED GW-UPDATE-NOT-RESTARTED GW-WIN-SCHTASK GW-WSL-NO-SYSTEMD HERMES-DEFECT HERMES-NEWER KANBAN-CORRUPT KANBAN-RUNAWAY KANBAN-SCHEMA KANBAN-STUCK LOG-FLOOD MATRIX-E2EE MATRIX-SYNC MATRIX-TOKEN MCP-HANG MCP-ORPHANS MEDIA-LOST MEM-FULL MEM-PROVIDER NET-CLOSE-WAIT NET-DNS NET-PROXY NET-SLEEP-WAKE NET-TCP NET-TLS PAIRING-ASTRAY PAIRING-CORRUPT PAIRING-LOCKOUT PAIRING-WAITING PERM-OWNER PERM-SECRETS PLATFORM-CREDENTIALS PLATFORM-DEAF PLATFORM-DEPS PLATFORM-DOWN PLATFORM-ERRORS PLATFORM-FFMPEG PLATFORM-LIKELY PLATFORM-NONE PLATFORM-PAUSED PLATFORM-POLICY PLATFORM-PORT-CLASH PLATFORM-STOPPED PLATFORM-TIMEOUT PLUGIN-FAILED PLUGIN-NOT-REGISTERED PROVIDER-401 PROVIDER-402-429 PROVIDER-403 PROVIDER-DOWN PROVIDER-KEY PROVIDER-REJECTED PROXY-LOCALHOST PROXY-SERVICE PROXY-SOCKS QQ-4004 QQ-4008 QQ-4009 QQ-FATAL-CLOSE QQ-GATEWAY-401 QQ-GIVEUP QQ-IS-RECONNECT QQ-SESSION QQ-STALE-RESUME QQ-TOKEN REPLY-DUP REPLY-LOST REPLY-NONE REQUEST-DUMPS RESPSTORE RUN-CUTOFF SESSION-ROUTE-STALE SESSION-UNSAVED SIGNAL-DAEMON SIGNAL-SSE-STALE SLACK-OAUTH SLACK-SCOPES SLACK-TOKEN SLACK-ZOMBIE SSL-CA STORE-CORRUPT TG-409 TG-BAD-TOKEN TG-COMMANDS TG-CONNECT-HANG TG-FLOOD TG-NETWORK TG-POLL-STALL TG-POOL-EXHAUST TG-TOPICS TOKEN-DUP TOKEN-SHAPE TOOL-FAILS UNKNOWN-ERROR UPD-CONFLICT-MARKERS UPD-CUTOFF UPD-FAILED UPD-NPM UPD-RECEIPT UPD-STASH UPD-TWO-VENVS UPD-VENV-BROKEN WA-BRIDGE WA-CLOUD-SETUP WA-NO-BRIDGE WA-NOT-PAIRED WEBHOOK-REJECTED WEBHOOK-SECRET WECOM-846609 WECOM-CREDENTIALS WECOM-WS-DEAD WIN-LOG-LOCK WX-POLL-ERROR WX-QR-LOGIN WX-SESSION-EXPIRED WX-STALE-CONTEXT WX-ZOMBIE-POLL YUANBAO-AUTH YUANBAO-CLOSE access allowlist-forms api-exposure bot-identities certificates clear-secrets config-allowlists config-duplicates config-keys config-lookalikes config-platforms config-variables config-version config-yaml configuration connections container-settings cron cron-jobs cron-targets cron-ticker cron-zone database-aside database-gone database-header database-holders database-log database-pages database-place database-rows database-schema database-size database-stamp databases disk-space doctor env-blanks env-duplicates env-encoding env-expansion env-lines env-ports env-readings env-shadows fallback-chain file-owners gateway gateway-age gateway-json gateway-last-life gateway-lock gateway-loop gateway-orphans gateway-resources gateway-running hermes-install home-mode kanban-claims kanban-runs key-settings key-shape leaked-secrets listening-ports log-rules logs memory-plugin model-name model-variables network-reach no-platform older-settings open-dashboard open-policies pairing-requests piles platform-adapters platform-links platform-logins platform-states platforms port-clashes provider-address provider-answers provider-asked provider-choice provider-entries provider-known provider-left provider-pool quiet-platforms recorded-errors refused-users release-breaks response-store restart-loop routes saved-rows search-rebuild secret-modes secrets served-profiles service-age service-container service-definition service-job service-limits service-login service-proxies service-restart service-state service-task session-resets sessions-folder shared-tokens side-models sqlite-library storage store-files stores supervision undelivered-answers unfinished-runs unfinished-updates unsaved-turns update-log update-receipts voice-programs webhook-secrets whatsapp-bridge whatsapp-output who-may-talk working-folder
set -g __hermes_doctor_words_2 AGENT-ERROR APPROVAL-DEADLOCK APPROVAL-TIMEOUT AUTHJSON AUTHZ-API-KEY AUTHZ-APPROVAL-CLICK AUTHZ-DASHBOARD AUTHZ-EMAIL-SENDER AUTHZ-NO-LISTS AUTHZ-OPEN AUTHZ-OPEN-REFUSE AUTHZ-UNAUTHORIZED BROWSER-DEAD BROWSER-ORPHANS CFG-ALLOWLIST-KEY CFG-BASE-URL CFG-BUILTIN-NAME CFG-CONTEXT-LENGTH CFG-CWD CFG-DEPRECATED CFG-DUP-KEY CFG-FALLBACK-DEAD CFG-FALLBACK-NONE CFG-FALLBACK-STR CFG-GATEWAY-JSON CFG-IGNORED CFG-KEY-ENV CFG-LOCAL-MODEL CFG-LOOKALIKE CFG-MODEL CFG-MODEL-AUX CFG-MODEL-PREFIX CFG-PROVIDER-LEFT CFG-PROVIDER-UNKNOWN CFG-PROVIDERS-SHAPE CFG-SESSION-RESET CFG-STT CFG-TYPE CFG-UNKNOWN-KEY CFG-UNRESOLVED CFG-VERSION-OLD CFG-YAML CLOCK-STEP CRED-IN-CONFIG CRED-IN-GIT CRED-IN-LOGS CRED-POOL-STALE CRED-SHAPE CRED-STRANGER CRON-DELIVERY CRON-JOB-FAILED CRON-JOBS-CORRUPT CRON-NO-GATEWAY CRON-SCRIPT-MISSING CRON-TICKER-DEAD CRON-TZ CTX-OVERFLOW DASH-REJECTED DB-ACTIVE-NULL DB-BACKUP-CLUTTER DB-BLOAT DB-DELETED-WAL DB-DISKIO DB-EMPTY DB-FTS-CORRUPT DB-FTS-STALE DB-FTS-UNFINISHED DB-GONE DB-INDEX DB-JOURNAL DB-JOURNAL-MODE DB-JSON DB-LOCKED DB-MALFORMED DB-NETFS DB-NEWER DB-NOTADB DB-OWNER DB-REPLACED DB-SAVED-ROWS DB-SCHEMA DB-SCHEMAVERSION DB-SQLITE-WALRESET DB-TITLES DB-TRUNCATED DB-WAL-BROKEN DB-WAL-HUGE DB-WAL-ROWS DB-WAL-STALE DC-BAD-TOKEN DC-COMMAND-SYNC DC-CONNECT-TIMEOUT DC-INTENTS DC-PERMISSIONS DC-VOICE DC-ZOMBIE DING-DEPS DING-STREAM DISK-FULL DOCKER-EXEC-PATH DOCKER-LIMITS DOCKER-NO-HEALTHCHECK DOCKER-NO-RESTART DOCKER-S6-DOWN DOCKER-TZ EMAIL-IMAP ENV-AMBIGUOUS ENV-BLANK ENV-BOM ENV-DUP ENV-EXPANDS ENV-IGNORED ENV-LINE ENV-PORT ENV-REDACTED ENV-SHADOWS-CONFIG FEISHU-CRASH FEISHU-SCOPES FEISHU-WS-DEAD GW-AGENT-HUNG GW-API-KEY-MISSING GW-CLEAN-EXIT-DEAD GW-CODE-SKEW GW-CRASH-LOOP GW-DIED GW-DOWN GW-DRAIN-HANG GW-DUP-UNITS GW-DUPLICATE GW-ERRORS GW-EXIT75-LOOP GW-EXIT78 GW-FD-EXHAUST GW-FD-LIMIT-LOW GW-HOME-MISMATCH GW-LAUNCHD-EIO GW-LAUNCHD-OLD-PLIST GW-LINGER GW-LOCK-LOST GW-LOOP-BLOCKED GW-MEMORY GW-NO-USER-BUS GW-NOT-ENABLED GW-OOM GW-PORT-IN-USE GW-RESTART-FAILED GW-RESTART-SPAM GW-SELF-RESTART GW-STALE-PID GW-STALE-SETTINGS GW-STALE-UNIT GW-STARTLIMIT GW-STARTUP-SLOW GW-STUCK-RESUME GW-SUSPENDED GW-TASK-DEAD GW-UNIT-BAD-PATH GW-UNIT-FAILED GW-UNSUPERVISED GW-UPDATE-NOT-RESTARTED GW-WIN-SCHTASK GW-WSL-NO-SYSTEMD HERMES-DEFECT HERMES-NEWER KANBAN-CORRUPT KANBAN-RUNAWAY KANBAN-SCHEMA KANBAN-STUCK LOG-FLOOD MATRIX-E2EE MATRIX-SYNC MATRIX-TOKEN MCP-HANG MCP-ORPHANS MEDIA-LOST MEM-FULL MEM-PROVIDER NET-CLOSE-WAIT NET-DNS NET-PROXY NET-SLEEP-WAKE NET-TCP NET-TLS PAIRING-ASTRAY PAIRING-CORRUPT PAIRING-LOCKOUT PAIRING-WAITING PERM-OWNER PERM-SECRETS PLATFORM-CREDENTIALS PLATFORM-DEAF PLATFORM-DEPS PLATFORM-DOWN PLATFORM-ERRORS PLATFORM-FFMPEG PLATFORM-LIKELY PLATFORM-NONE PLATFORM-PAUSED PLATFORM-POLICY PLATFORM-PORT-CLASH PLATFORM-STOPPED PLATFORM-TIMEOUT PLUGIN-FAILED PLUGIN-NOT-REGISTERED PROVIDER-401 PROVIDER-402-429 PROVIDER-403 PROVIDER-DOWN PROVIDER-KEY PROVIDER-REJECTED PROXY-LOCALHOST PROXY-SERVICE PROXY-SOCKS QQ-4004 QQ-4008 QQ-4009 QQ-FATAL-CLOSE QQ-GATEWAY-401 QQ-GIVEUP QQ-IS-RECONNECT QQ-SESSION QQ-STALE-RESUME QQ-TOKEN REPLY-DUP REPLY-LOST REPLY-NONE REQUEST-DUMPS RESPSTORE RUN-CUTOFF SESSION-ROUTE-STALE SESSION-UNSAVED SIGNAL-DAEMON SIGNAL-SSE-STALE SLACK-OAUTH SLACK-SCOPES SLACK-TOKEN SLACK-ZOMBIE SSL-CA STORE-CORRUPT TG-409 TG-BAD-TOKEN TG-COMMANDS TG-CONNECT-HANG TG-FLOOD TG-NETWORK TG-POLL-STALL TG-POOL-EXHAUST TG-TOPICS TOKEN-DUP TOKEN-SHAPE TOOL-FAILS UNKNOWN-ERROR UPD-CONFLICT-MARKERS UPD-CUTOFF UPD-FAILED UPD-NPM UPD-RECEIPT UPD-STASH UPD-TWO-VENVS UPD-VENV-BROKEN WA-BRIDGE WA-CLOUD-SETUP WA-NO-BRIDGE WA-NOT-PAIRED WEBHOOK-REJECTED WEBHOOK-SECRET WECOM-846609 WECOM-CREDENTIALS WECOM-WS-DEAD WIN-LOG-LOCK WX-POLL-ERROR WX-QR-LOGIN WX-SESSION-EXPIRED WX-STALE-CONTEXT WX-ZOMBIE-POLL YUANBAO-AUTH YUANBAO-CLOSE

complete -c hermes-doctor -f

complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a check -d 'Show what is wrong and what to do; change nothing'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a timeline -d 'Show restarts, errors, edits and repairs by time'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a config -d 'Show the settings that the next message will use'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a ask -d 'Ask the bot one question; it may cost a little'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a learn -d 'Learn a Hermes release that is newer than this tool'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a fix -d 'Show the repair plan; with --apply, repair'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a undo -d 'Restore the files that a repair or restore changed'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a switch-provider -d 'Switch to another model provider and test it'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a update-guard -d 'Run an update command between a backup and a check'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a rollback -d 'Return to the Hermes and the data before an update'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a mute -d 'Silence a known problem until it changes'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a unmute -d 'End a mute'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a mutes -d 'List the mutes of all homes'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a probe -d 'Report the gateway\'s health to Docker or Kubernetes'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a explain -d 'Explain a code: what it means and what fixes it'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a list -d 'List the checks, codes or fixes'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a settings -d 'Show this tool\'s own settings and their origin'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a demo -d 'Show check, fix and undo on a broken example home'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a history -d 'Show what was wrong, how often and for how long'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a backup -d 'Create, verify, restore and prune backups of a home'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a hook -d 'Back up before and check after each Hermes update'
complete -c hermes-doctor -n '__hermes_doctor_at "" 0' -a watch -d 'Check regularly, notify, and repair if asked to'
complete -c hermes-doctor -n '__hermes_doctor_at ""' -l version -d 'Print the version and exit'
complete -c hermes-doctor -n '__hermes_doctor_at ""' -l install-completion -d 'Install completion for the current shell'
complete -c hermes-doctor -n '__hermes_doctor_at ""' -l show-completion -d 'Show completion for the current shell, to copy it or customize the installation'
complete -c hermes-doctor -n '__hermes_doctor_at ""' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l all-homes -d 'Check every profile and the home of every running gateway'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l deep -d 'Read every page and row; slow for large databases'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l network -d 'Also contact every platform and the model provider'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l only -xa '$__hermes_doctor_words_1' -d 'Run only this code, check or group'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l skip -xa '$__hermes_doctor_words_1' -d 'Skip this code, check or group'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l fail-on -xa 'critical error warning info' -d 'Exit with 1 from this severity on: critical, error, warning or info'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -s v -l verbose -d 'Show all evidence, notes, passed and skipped checks'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l format -xa 'text json prometheus nagios junit github' -d 'Print text, json, prometheus, nagios, junit or github'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l output -rF -d 'Write to this file and replace its content in one step'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l record -d 'Add the result to the history; see `history`'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -l force -d 'With --output: replace a file that hermes-doctor did not write'
complete -c hermes-doctor -n '__hermes_doctor_at "check"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -l since -x -d 'Start this long ago (30m, 2h, 3d) or at a local date and time'
complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -l deep -d 'Read every page and row; slow for large databases'
complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "timeline"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "config"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "config"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "config"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "ask"' -l timeout -x -d 'Wait at most this many seconds for each answer'
complete -c hermes-doctor -n '__hermes_doctor_at "ask"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "ask"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "ask"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "learn"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "learn"' -l timeout -x -d 'Give up after this many seconds'
complete -c hermes-doctor -n '__hermes_doctor_at "learn"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "learn"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l apply -d 'Carry out the plan'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -s y -l yes -d 'Answer yes to every question; choose a person with --subject'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l pick -d 'Ask before each repair, also before safe ones'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l ask -d 'At the end, ask the bot one question; it may cost a little'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l subject -x -d 'Repair only this subject, as `check --json` names it'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l deep -d 'Read every page and row; slow for large databases'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l network -d 'Also contact every platform and the model provider'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "fix"' -a '$__hermes_doctor_words_2'

complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -s y -l yes -d 'Answer yes to every question'
complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -l force -d 'Undo even if a file has changed since; that version is backed up'
complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "undo"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "undo" 0' -a '(__hermes_doctor_runs)'

complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l base-url -x -d 'Set its address; required for a new provider'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l key-env -x -d 'Read its key from this variable instead of NAME_API_KEY'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l model -x -d 'Use this model; required if the provider does not serve the current one'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l api-mode -xa 'chat_completions anthropic_messages codex_responses' -d 'Use this protocol instead of the one that Hermes guesses'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l ask-key -d 'Ask for a key even if its variable is set'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l no-fallback -d 'Do not add the current provider as fallback'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l no-test -d 'Switch without a test request to the provider'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l apply -d 'Carry out the plan'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -s y -l yes -d 'Answer yes to every question'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l ask -d 'At the end, ask the bot one question; it may cost a little'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "switch-provider"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "update-guard"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "update-guard"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "update-guard"' -l force -d 'Update even if a check objects or the backup fails'
complete -c hermes-doctor -n '__hermes_doctor_at "update-guard"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_after "update-guard"' -xa '(__hermes_doctor_foreign)'

complete -c hermes-doctor -n '__hermes_doctor_at "rollback"' -l keep-data -d 'Reinstall only the previous Hermes; keep the current data'
complete -c hermes-doctor -n '__hermes_doctor_at "rollback"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "rollback"' -s y -l yes -d 'Answer yes to every question'
complete -c hermes-doctor -n '__hermes_doctor_at "rollback"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "rollback"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l for -x -d 'End the mute after this time, such as 12h or 7d'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l sticky -d 'Keep the mute when the problem disappears'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l because -x -d 'The reason, which `mutes` shows'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l deep -d 'Read every page and row; slow for large databases'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l network -d 'Also contact every platform and the model provider'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "mute"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "mute" 0' -a '$__hermes_doctor_words_2'

complete -c hermes-doctor -n '__hermes_doctor_at "unmute"' -l all -d 'End all mutes of the home'
complete -c hermes-doctor -n '__hermes_doctor_at "unmute"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "unmute"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "unmute" 0' -a '$__hermes_doctor_words_2'

complete -c hermes-doctor -n '__hermes_doctor_at "mutes"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "mutes"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "probe"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "probe"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "probe" 0' -a 'live ready started'

complete -c hermes-doctor -n '__hermes_doctor_at "explain"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "explain"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "explain" 0' -a '$__hermes_doctor_words_2'

complete -c hermes-doctor -n '__hermes_doctor_at "list"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "list"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "list"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "list" 0' -a 'checks codes fixes'

complete -c hermes-doctor -n '__hermes_doctor_at "settings"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "settings"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "settings"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "demo"' -l keep -d 'Keep the example home, so that you can try it yourself'
complete -c hermes-doctor -n '__hermes_doctor_at "demo"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "history" 0' -a prune -d 'Remove old records of all homes, or of --home'
complete -c hermes-doctor -n '__hermes_doctor_at "history"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "history"' -l since -x -d 'Show what happened since then: 12h, 30d, or a local date such as 2026-11-01'
complete -c hermes-doctor -n '__hermes_doctor_at "history"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "history"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "history" 0' -a '$__hermes_doctor_words_2'

complete -c hermes-doctor -n '__hermes_doctor_at "history prune"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "history prune"' -l keep -x -d 'Keep what is newer than this, such as 90d'
complete -c hermes-doctor -n '__hermes_doctor_at "history prune"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a create -d 'Back up the home and verify the backup'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a list -d 'List the backups, oldest first'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a verify -d 'Compare every byte of a backup with its manifest'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a restore -d 'Restore files from a backup; `undo` reverts it'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a prune -d 'Remove old backups that are no longer needed'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a export -d 'Write a backup into one encrypted file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a push -d 'Send backups to restic or to another machine (rsync)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a pull -d 'Fetch a backup from a restic repository'
complete -c hermes-doctor -n '__hermes_doctor_at "backup" 0' -a schedule -d 'Back up every day and remove old backups'
complete -c hermes-doctor -n '__hermes_doctor_at "backup"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l reason -x -d 'Store this reason with the backup'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l full -d 'Copy everything; share no data with the previous backup'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l include -x -d 'Also back up files that are skipped by default (glob)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l exclude -x -d 'Leave out these files (glob)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l to -rF -d 'Write the encrypted archive to this folder or file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l encrypt-to -x -d 'Encrypt to this age or ssh public key, to the keys in @FILE, or with a `passphrase`'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l passphrase-file -rF -d 'Read the passphrase of an archive from this file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l daily -x -d 'Keep the newest backup of each of the last N days'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l weekly -x -d 'Keep the newest backup of each of the last N weeks'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l monthly -x -d 'Keep the newest backup of each of the last N months'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup create"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -l hermes -d 'List the zips and snapshots that Hermes made'
complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -l restic -x -d 'Use this restic repository: a folder, sftp:…, s3:…, rest:…'
complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup list"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l all -d 'Verify all backups'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l deep -d 'Restore into a temporary folder and let SQLite check every row'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l hermes -d 'Verify the zips and snapshots that Hermes made'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l identity -rF -d 'Decrypt an archive with this private key file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l passphrase-file -rF -d 'Read the passphrase of an archive from this file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup verify"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l identity -rF -d 'Decrypt an archive with this private key file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l passphrase-file -rF -d 'Read the passphrase of an archive from this file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l other-home -d 'Allow a backup of another home or another folder'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -s y -l yes -d 'Answer yes to every question'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "backup restore"' -a 'config env auth history sessions kanban cron pairing webhooks channels memories skills whatsapp weixin matrix'

complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l keep -x -d 'Keep the N newest backups'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l older-than -x -d 'Remove only backups older than this: 30d, 12h, 4w'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l daily -x -d 'Keep the newest backup of each of the last N days'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l weekly -x -d 'Keep the newest backup of each of the last N weeks'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l monthly -x -d 'Keep the newest backup of each of the last N months'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -s y -l yes -d 'Answer yes to every question'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup prune"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l to -rF -d 'Write the encrypted archive to this folder or file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l encrypt-to -x -d 'Encrypt to this age or ssh public key, to the keys in @FILE, or with a `passphrase`'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l passphrase-file -rF -d 'Read the passphrase of an archive from this file'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup export"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l restic -x -d 'Use this restic repository: a folder, sftp:…, s3:…, rest:…'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l rsync -x -d 'Send all backups to this folder or host with rsync'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l init -d 'Create the restic repository first'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup push"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup pull"' -l restic -x -d 'Use this restic repository: a folder, sftp:…, s3:…, rest:…'
complete -c hermes-doctor -n '__hermes_doctor_at "backup pull"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup pull"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup pull"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "backup pull"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule" 0' -a install -d 'Install a daily backup (systemd, launchd or cron)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule" 0' -a status -d 'Show whether it is installed, and the last backup'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule" 0' -a remove -d 'Remove the daily backup; existing backups are kept'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l at -x -d 'Back up at this time of the day'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l daily -x -d 'Keep the newest backup of each of the last N days'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l weekly -x -d 'Keep the newest backup of each of the last N weeks'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l monthly -x -d 'Keep the newest backup of each of the last N months'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l include -x -d 'Also back up these files, as in `backup create`'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l exclude -x -d 'Leave out these files, as in `backup create`'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l dry-run -d 'Show what would be written, without writing it'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule install"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule status"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule status"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule status"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule status"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule status"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule remove"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule remove"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule remove"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "backup schedule remove"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "hook" 0' -a install -d 'Guard `hermes update` and /update in chats'
complete -c hermes-doctor -n '__hermes_doctor_at "hook" 0' -a remove -d 'Remove everything that `hook install` wrote'
complete -c hermes-doctor -n '__hermes_doctor_at "hook" 0' -a status -d 'Show which ways to update are guarded'
complete -c hermes-doctor -n '__hermes_doctor_at "hook" 0' -a run -d 'Run one part of the guard: before or after an update'
complete -c hermes-doctor -n '__hermes_doctor_at "hook"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l shell -d 'Install the launcher that guards `hermes update`'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l no-shell -d 'Switch off --shell'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l chat -d 'Install the hook that guards /update in chats'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l no-chat -d 'Switch off --chat'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -l dry-run -d 'Show what would be written, without writing it'
complete -c hermes-doctor -n '__hermes_doctor_at "hook install"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -l shell -d 'Remove the launcher, which all your homes share'
complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -l no-shell -d 'Switch off --shell'
complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -l chat -d 'Remove the hook from this home'
complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -l no-chat -d 'Switch off --chat'
complete -c hermes-doctor -n '__hermes_doctor_at "hook remove"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "hook status"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "hook status"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "hook status"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "hook run"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "hook run"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "hook run"' -l force -d 'Update even if a check objects or the backup fails'
complete -c hermes-doctor -n '__hermes_doctor_at "hook run"' -l json -d 'Print one JSON document instead of text'
complete -c hermes-doctor -n '__hermes_doctor_at "hook run"' -s h -l help -d 'Show this message and exit'
complete -c hermes-doctor -n '__hermes_doctor_at "hook run" 0' -a 'pre-update post-update'

complete -c hermes-doctor -n '__hermes_doctor_at "watch" 0' -a install -d 'Install the watch as a service and start it'
complete -c hermes-doctor -n '__hermes_doctor_at "watch" 0' -a status -d 'Show whether the watch runs and what it did'
complete -c hermes-doctor -n '__hermes_doctor_at "watch" 0' -a remove -d 'Stop the watch and remove everything it installed'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l interval -x -d 'Check this often: 30s, 5m'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l once -d 'Check once and report what has changed since the last time'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l heal -d 'Apply safe fixes and restart the gateway; see --also'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l no-heal -d 'Switch off --heal'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l also -x -d 'With --heal: also apply this code or fix, which otherwise asks'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l after -x -d 'Repair a problem after it was found N times in a row'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l budget -x -d 'Allow this many repairs in this time'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l patience -x -d 'Let a repair wait this long for a running answer'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l notify-on -xa 'critical error warning info' -d 'Notify from this severity on: critical, error, warning, info'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l notify-command -x -d 'Run this command (@FILE reads it from a file) with the event as JSON on stdin and in HERMES_DOCTOR_* variables'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l notify-webhook -x -d 'POST the event as JSON to this address (@FILE reads it from a file)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l notify-hermes -x -d 'Send the event with `hermes send` (Hermes 0.15 or later)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l json -d 'Print one JSON object per line'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l network -d 'Also contact every platform and the model provider'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l no-network -d 'Switch off --network'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l only -xa '$__hermes_doctor_words_1' -d 'Run only this code, check or group'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l skip -xa '$__hermes_doctor_words_1' -d 'Skip this code, check or group'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l fail-on -xa 'critical error warning info' -d 'From this severity on, exit with 1 (with --once) and use --heartbeat-fail'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l metrics -rF -d 'After each check, write metrics for Prometheus here'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l heartbeat -x -d 'After each check, request this address (@FILE reads it from a file), so that a service notices when the watch is gone'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -l heartbeat-fail -x -d 'If there are problems at or above --fail-on, or the home cannot be checked, request this address instead (@FILE reads it from a file)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l dry-run -d 'Show what would be written, without writing it'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l interval -x -d 'Check this often: 30s, 5m'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l heal -d 'Apply safe fixes and restart the gateway; see --also'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l no-heal -d 'Switch off --heal'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l also -x -d 'With --heal: also apply this code or fix, which otherwise asks'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l after -x -d 'Repair a problem after it was found N times in a row'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l budget -x -d 'Allow this many repairs in this time'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l patience -x -d 'Let a repair wait this long for a running answer'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l notify-on -xa 'critical error warning info' -d 'Notify from this severity on: critical, error, warning, info'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l notify-command -x -d 'Run this command (@FILE reads it from a file) with the event as JSON on stdin and in HERMES_DOCTOR_* variables'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l notify-webhook -x -d 'POST the event as JSON to this address (@FILE reads it from a file)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l notify-hermes -x -d 'Send the event with `hermes send` (Hermes 0.15 or later)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l network -d 'Also contact every platform and the model provider'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l no-network -d 'Switch off --network'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l fail-on -xa 'critical error warning info' -d 'From this severity on, exit with 1 (with --once) and use --heartbeat-fail'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l plugins -xa '(__fish_complete_directories)' -d 'Also load checks/ and fixes/ from this folder'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l vault -xa '(__fish_complete_directories)' -d 'Keep backups in this folder instead of HOME/backups/doctor'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l metrics -rF -d 'After each check, write metrics for Prometheus here'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l heartbeat -x -d 'After each check, request this address (@FILE reads it from a file), so that a service notices when the watch is gone'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -l heartbeat-fail -x -d 'If there are problems at or above --fail-on, or the home cannot be checked, request this address instead (@FILE reads it from a file)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch install"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "watch status"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "watch status"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch status"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "watch status"' -s h -l help -d 'Show this message and exit'

complete -c hermes-doctor -n '__hermes_doctor_at "watch remove"' -l home -xa '(__fish_complete_directories)' -d 'Use this Hermes home'
complete -c hermes-doctor -n '__hermes_doctor_at "watch remove"' -l system -d 'For the whole machine, not only for your user (sudo)'
complete -c hermes-doctor -n '__hermes_doctor_at "watch remove"' -l cron -d 'Use the crontab even if systemd or launchd runs'
complete -c hermes-doctor -n '__hermes_doctor_at "watch remove"' -s h -l help -d 'Show this message and exit'
