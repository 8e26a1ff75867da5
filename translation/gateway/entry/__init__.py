"""Where requests come in: GatewayClass, Gateway and ListenerSet, their listeners, certificates and addresses."""
