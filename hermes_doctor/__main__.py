"""Where the command begins; `python -m hermes_doctor` is `hermes-doctor`."""

import gc


def main() -> None:
    """Load the command line without collecting garbage: there is none yet, and looking costs."""
    gc.disable()
    from hermes_doctor.importing import quickly

    quickly()
    from hermes_doctor.cli import main as run

    run()


if __name__ == "__main__":
    main()
