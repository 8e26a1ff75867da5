"""The API server and the gateways of a simulation, and the network in front of them."""
