"""The checker that the tests put on every annotated function of the package."""

from beartype import BeartypeConf, beartype

# An int may stand where a float is asked for, as Python's own type rules say.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
