"""What every run needs: random streams, devices, memory, interrupts, records."""
