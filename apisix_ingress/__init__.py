"""The core of the ingress controller: everything that is generic over kinds. Holds the version only."""

__version__ = "0.1.0"
