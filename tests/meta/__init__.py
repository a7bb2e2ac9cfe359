"""Tests about the code: its layers, its sizes, its declarations, what it says of itself."""
