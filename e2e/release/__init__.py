"""`make release-rehearsal`: every step of a release, from the image to an upgrade, on this machine."""
