"""Replays recorded cases of a live ingress-nginx 1.15.1 against a gateway with this controller's records."""
