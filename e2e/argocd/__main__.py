"""`python -m e2e.argocd`: build the program."""

import sys

from e2e.argocd import locate
from e2e.cluster.gobuild import BinariesError

if __name__ == "__main__":
    try:
        print(locate())
    except BinariesError as error:
        sys.exit(f"e2e.argocd: {error}")
