"""SQL conditions for damaged rows in the API server's response cache."""

_PLAIN = "data"
for _word in ("-Infinity", "Infinity", "NaN"):  # Python reads and writes these, SQLite does not
    _PLAIN = f"replace({_PLAIN}, '{_word}', '0')"

UNREADABLE = f"NOT CASE typeof(data) WHEN 'text' THEN json_valid({_PLAIN}) ELSE 0 END"
"""Rows of `responses` whose data is not JSON."""
DANGLING = (
    "NOT EXISTS (SELECT 1 FROM responses WHERE responses.response_id = conversations.response_id)"
)
"""Rows of `conversations` whose last response is missing."""
