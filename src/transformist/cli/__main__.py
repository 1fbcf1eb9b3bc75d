"""`python -m transformist.cli`, the same as `transformist`."""

import sys

from transformist.cli import main

if __name__ == "__main__":
    sys.exit(main())
