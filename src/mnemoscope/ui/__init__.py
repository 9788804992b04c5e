"""What people see: commands, figures, pages, the explorer, benchmarks."""
