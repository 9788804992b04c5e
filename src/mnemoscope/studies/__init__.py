"""The claims of the papers as studies: one file each, its figure beside its setting."""
