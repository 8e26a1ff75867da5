"""Generates documents: pages from models, examples and versions, and the dashboards.

`python -m reference --write` writes the files that `pages.py` lists; `--check` fails if a file is stale. It reads
folders of the project: examples, golden files, `versions.yaml`. `reference.content.program` writes the pages that need
only the installed program: the command line and the codes. Other pages are not changed; `docs/configuration.md` and
`docs/metrics.md` are compared with the program by tests.
"""
