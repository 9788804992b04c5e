"""Jinja2, set up once. Templates are the files in the `templates` folders beside the code that fills them."""

from functools import cache
from typing import Any

from mnemoscope.engine.extras import need


def render(template: str, **values: Any) -> str:
    """A page or a part of one. `template` is a path below `ui`, such as "pages/templates/report.html"."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Any:
    """Every value is escaped unless it is Markup; an undefined name is an error."""
    need("pages", "jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mnemoscope.ui", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["number"] = format  # {{ 0.25 | number(".3f") }}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment
