"""What a gateway of this home really goes by, and where each value comes from.

The modules answer what Hermes itself would answer, from files alone and for the installed
release: `resolved.resolve` is the way in. Nothing here runs Hermes, and no key or token leaves
`text.Text`: answers name a secret and its place, and tell two apart by a fingerprint.
"""
