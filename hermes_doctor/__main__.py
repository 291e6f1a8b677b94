"""`python -m hermes_doctor` is `hermes-doctor`."""

from hermes_doctor.cli import main

main()
