"""Replays recorded cases of a live ingress-nginx 1.15.1 against a gateway that this controller's records are in."""
