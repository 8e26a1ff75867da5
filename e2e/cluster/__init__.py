"""The local cluster that the stories run on: binaries, processes, certificates, a small API client. No stories."""
