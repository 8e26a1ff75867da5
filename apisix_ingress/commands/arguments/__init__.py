"""The command line itself: what commands declare, parsing on top of argparse, help pages and shell completion."""
