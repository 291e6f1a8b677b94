"""Create a healthy home with a release's own code.

Runs under the release's own interpreter and imports nothing from this project.
"""

from __future__ import annotations

import os
from pathlib import Path


def main() -> None:
    """Write settings, a history of forty messages and a board with three tasks."""
    home = Path(os.environ["HERMES_HOME"])
    (home / "logs").mkdir(exist_ok=True)
    (home / "config.yaml").write_text(
        "# made for a test\nmodel:\n  default: acme/test-model\n  provider: openrouter\n"
    )
    (home / ".env").write_text("OPENROUTER_API_KEY=not-a-key\nSECOND=two\n")
    (home / ".env").chmod(0o600)
    from hermes_cli import kanban_db  # type: ignore[import-not-found]
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    history = SessionDB(home / "state.db")
    history.create_session("one", "cli", model="test-model")
    for n in range(40):
        history.append_message("one", "user", f"message number {n}")
    history.close()
    board = kanban_db.connect(home / "kanban.db")
    for n in range(3):
        kanban_db.create_task(board, title=f"task number {n}", body="its text")
    board.close()


if __name__ == "__main__":
    main()
