"""Pages tried in a real browser, headless."""
