"""The building blocks of fixes: each turns a finding into steps and writes nothing.

They query `probes` and make `steps`; `transaction` executes them.
"""
