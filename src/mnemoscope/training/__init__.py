"""How parameters are learned: in three steps, fast or by autodiff, and beyond them."""
