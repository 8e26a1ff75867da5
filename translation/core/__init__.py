"""The parts that all translations share: options, context, builder and result."""
