"""`python -m flambeau`: hands over to the command line."""

import sys

from flambeau.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
