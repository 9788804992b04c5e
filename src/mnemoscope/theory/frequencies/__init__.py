"""What a setting will do where tokens are not equally frequent (docs/theory/frequencies.md)."""
