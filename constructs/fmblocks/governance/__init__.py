"""The key and what every resource of a project has in common."""
