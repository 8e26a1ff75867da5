"""The local cluster the stories run on: binaries, processes, certificates, a small API client. No story lives here."""
