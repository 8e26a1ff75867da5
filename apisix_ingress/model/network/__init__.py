"""Host names, IP addresses and the keys by which objects compete for hosts and paths. Pure."""
