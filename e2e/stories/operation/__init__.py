"""What people see of the controller: commands, logs, the status page."""
