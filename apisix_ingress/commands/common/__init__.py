"""What commands share: settings, progress, input and output."""
