"""An update of Hermes with a way back: a verified backup before it, a look at everything after it.

`before` and `after` are the two halves, `guard` puts a command between them, `going_back` undoes
it all. `records` keeps what was there before; `launcher`, `shellfiles` and `chat` see to it that no
update is started without them.
"""
