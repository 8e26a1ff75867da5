"""CustomResourceDefinitions of other projects, with the parts that the stories need."""
