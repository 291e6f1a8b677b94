"""Read and write the records of this tool: journals of runs, records of updates, the home's lock.

`repair` and `updates` write the records; `backup` and `probes` read them.
"""
