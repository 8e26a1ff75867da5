"""The API server and the gateways of a simulation, and the network before them."""
