"""Figures and pages, made from theory, store and analysis."""
