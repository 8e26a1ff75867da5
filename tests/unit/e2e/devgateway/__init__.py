"""Tests of the development gateway against the recorded answers of a real one."""
