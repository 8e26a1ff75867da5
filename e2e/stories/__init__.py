"""The end-to-end stories, in folders by subject."""
