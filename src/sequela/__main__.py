"""``python -m sequela`` is the command ``sequela``."""

from sequela.cli import main

if __name__ == "__main__":
    main(prog_name="sequela")
