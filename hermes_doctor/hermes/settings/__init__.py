"""Read, resolve, check and edit config.yaml and .env as Hermes does.

It works on texts and values; `probes` reads the files of a home and passes them in.
"""
