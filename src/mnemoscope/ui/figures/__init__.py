"""Figures, drawn by Matplotlib."""
