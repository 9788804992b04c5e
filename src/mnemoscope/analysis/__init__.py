"""What results mean: estimates with their uncertainty."""
