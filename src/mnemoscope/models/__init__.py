"""Logits from parameters."""
