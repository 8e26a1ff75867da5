"""How long a deleted Pod still receives requests through the proxy of a gateway."""
