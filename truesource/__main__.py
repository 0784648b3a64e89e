"""``python -m truesource``: the command, for a Python whose scripts are not on the path."""

from truesource.cli.main import main

if __name__ == "__main__":
    main()
