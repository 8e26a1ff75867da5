"""Unit tests of the local cluster's pure parts."""
