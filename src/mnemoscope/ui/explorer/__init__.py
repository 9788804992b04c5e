"""The explorer: theory that can be touched, and measurements beside it, on a page of its own."""
