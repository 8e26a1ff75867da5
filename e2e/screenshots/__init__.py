"""`make screenshots`: the pictures of the status page in docs/images, from a real controller and a real browser."""
