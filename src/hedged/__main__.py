"""The command line, as `python -m hedged`."""

from hedged.cli import main

if __name__ == "__main__":
    main()
