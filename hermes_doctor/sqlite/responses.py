"""Which rows of the API server's cache fail the requests that meet them, as conditions in SQL."""

_PLAIN = "data"
for _word in ("-Infinity", "Infinity", "NaN"):  # Python reads and writes these, SQLite does not
    _PLAIN = f"replace({_PLAIN}, '{_word}', '0')"

UNREADABLE = f"NOT CASE typeof(data) WHEN 'text' THEN json_valid({_PLAIN}) ELSE 0 END"
"""Of `responses`: what was kept is no JSON."""
DANGLING = (
    "NOT EXISTS (SELECT 1 FROM responses WHERE responses.response_id = conversations.response_id)"
)
"""Of `conversations`: the answer that it would go on from is gone."""
