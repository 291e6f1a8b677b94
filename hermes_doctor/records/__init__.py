"""What this tool writes down: the journal of each run, unfinished runs, updates, the home's lock.

`repair` and `updates` write the records; `backup` and `probes` read them.
"""
