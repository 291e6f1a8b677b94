"""config.yaml and .env as Hermes reads them: parsed, resolved, judged, edited as text.

It works on texts and values. `probes` reads the files of a home and hands them over.
"""
