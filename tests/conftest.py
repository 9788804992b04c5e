"""Shapes and types in signatures are checked while testing, and only then."""

from jaxtyping import install_import_hook

# Before anything imports the package, so that every annotated function is checked.
install_import_hook("mnemoscope", "type_checks.check")
