"""The entry of requests: GatewayClass, Gateway and ListenerSet, with listeners, certificates and addresses."""
