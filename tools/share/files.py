"""The files in share/ of an installation: the man page and the completions of shells."""

from __future__ import annotations

from tools.share import bash_completion, command_tree, fish_completion, man_page, zsh_completion

_BASH_OTHER = """\
# Completion of {other} for bash. Made from the commands; do not edit.
case ${{BASH_SOURCE[0]}} in
  */*) . "${{BASH_SOURCE[0]%/*}}/{name}" ;;
  *) . ./{name} ;;
esac
"""


def files() -> dict[str, str]:
    """Return each file below share/ with its text."""
    tree = command_tree.read()
    name, *others = command_tree.NAMES
    bash, fish = "bash-completion/completions", "fish/vendor_completions.d"
    made = {
        f"man/man1/{name}.1": man_page.page(tree),
        f"{bash}/{name}": bash_completion.script(tree),
        f"zsh/site-functions/_{name}": zsh_completion.script(tree),
        f"{fish}/{name}.fish": fish_completion.script(tree),
    }
    for other in others:
        made[f"man/man1/{other}.1"] = man_page.other()
        made[f"{bash}/{other}"] = _BASH_OTHER.format(other=other, name=name)
        made[f"{fish}/{other}.fish"] = fish_completion.other(other)
    return made
