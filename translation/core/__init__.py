"""What all translations share: options, context, builder and result."""
