"""Settings that may name objects of the user's own, and that take them along to other processes."""

from typing import Any, TypeVar

from mnemoscope.spec.base import Spec
from mnemoscope.spec.objects import arrive, is_hashed, travelling
from mnemoscope.spec.validators import is_kept_name

S = TypeVar("S", bound=Spec)


class Carrying(Spec, frozen=True, extra="forbid"):
    """A setting some of whose values name objects, as `objects.name_object` does."""

    @property
    def objects(self) -> tuple[str, ...]:
        """The names of its objects."""
        return tuple(value for value in self.__dict__.values() if is_kept_name(value))

    @property
    def hashed(self) -> bool:
        """Whether the identity of all its objects is known, so that its trials may be kept."""
        return all(is_hashed(name) for name in self.objects)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the objects that another process could not import beside the values."""
        objects = travelling(self.objects)
        return (_rebuilt, (type(self), self.model_dump(), objects)) if objects else super().__reduce_ex__(protocol)


def _rebuilt(kind: type[S], values: dict[str, Any], objects: dict[str, Any]) -> S:
    arrive(objects)
    return kind.read(values)
