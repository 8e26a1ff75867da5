"""CustomResourceDefinitions of other projects, as much of them as the stories need."""
