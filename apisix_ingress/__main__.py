"""`python -m apisix_ingress` is the command line."""

from apisix_ingress.cli import main

if __name__ == "__main__":
    main()
