"""The plugin schemas that gateways publish, and checks of plugin configurations against them."""
