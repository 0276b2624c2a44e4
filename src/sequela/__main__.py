"""Run the command ``sequela`` as ``python -m sequela``."""

from sequela.cli import main

if __name__ == "__main__":
    main(prog_name="sequela")
