"""``python -m analysim``."""

from analysim.cli import main

if __name__ == "__main__":
    main()
