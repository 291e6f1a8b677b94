"""Entry point of the command line; `python -m hermes_doctor` is the same as `hermes-doctor`."""

import gc


def main() -> None:
    """Load and run the command line with the garbage collector off, as there is no garbage yet.

    With Python's default collector settings, here and in `cli.main`, `check` takes 20 ms more CPU:
    405 ms instead of 385 ms, on a used home with a running gateway (`benchmarks/trees.py`).
    """
    gc.disable()
    try:
        from hermes_doctor.cli.main import main as run

        run()
    except KeyboardInterrupt:  # before the command line can handle it
        import sys

        sys.stderr.write("\nhermes-doctor: Interrupted. Nothing was changed.\n")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
