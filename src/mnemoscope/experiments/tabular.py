"""Results that are tables: as a pandas frame, and as an xarray with labelled axes."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from mnemoscope.engine.extras import need

if TYPE_CHECKING:
    import pandas
    import xarray


class Tabular(ABC):
    """A result with rows of data; the columns in `axes` say which row is which."""

    axes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """One row after the other, all with the same columns."""

    def labels(self) -> tuple[str, ...]:
        """The columns that become the axes of an xarray."""
        return self.axes

    def to_frame(self) -> "pandas.DataFrame":
        """The rows as a table."""
        need("tables", "pandas")
        import pandas

        return pandas.DataFrame(self.records())

    def to_xarray(self) -> "xarray.Dataset":
        """The same with labelled axes."""
        need("tables", "xarray")
        return self.to_frame().set_index(list(self.labels())).to_xarray()
