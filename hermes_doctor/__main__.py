"""Where the command begins; `python -m hermes_doctor` is `hermes-doctor`."""

import gc


def main() -> None:
    """Load the command line without looking for garbage: there is none yet.

    With Python's own settings, here and in `cli.main`, `check` takes 17 ms more CPU: 321 ms instead
    of 304 ms, on a used home beside a running gateway (`benchmarks/trees.py`).
    """
    gc.disable()
    from hermes_doctor.fast_import import quickly

    quickly()
    from hermes_doctor.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
