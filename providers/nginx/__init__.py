"""The provider of the hosts of ingress-nginx."""
