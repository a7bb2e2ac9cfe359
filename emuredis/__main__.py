"""``python -m emuredis``."""

import sys

from emuredis.cli import main

if __name__ == "__main__":
    sys.exit(main())
