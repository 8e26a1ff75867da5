"""The Helm chart as helm renders it."""
