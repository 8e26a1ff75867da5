"""The user interfaces of the controller: commands, logs, the status page."""
