"""Keys: databases, their deadlines, and the one place where a change is made known."""
