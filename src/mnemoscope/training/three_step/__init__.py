"""Three gradient steps from zero, computed exactly: by token, by sample, and by autodiff."""
