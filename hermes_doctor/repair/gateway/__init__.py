"""Gateway control: stop and start the gateway of a home through its supervisor.

`supervisors` finds the supervisor; `transaction` stops and starts the gateway around a run.
"""
