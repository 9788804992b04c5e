"""The end of training: how much a model holds that is trained until its loss stops moving (docs/theory/trained.md)."""
