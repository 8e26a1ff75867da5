"""The part of the documents that is written by a program: pages from models, examples and versions, the dashboards.

`python -m reference --write` writes what `pages.py` lists, `--check` fails where a file is stale. It takes folders of
the project: examples, golden files, `versions.yaml`. What takes the installed program alone, the command line and the
codes, is written by `reference.content.program`. Pages that people write are nowhere touched; `docs/configuration.md`
and `docs/metrics.md` are compared with the program by tests.
"""
