"""What a project file says about the project itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from fmblocks.settings import Text

_ACCOUNT = r"^\d{12}$"


def _account(value: str) -> str:
    if not (len(value) == 12 and value.isascii() and value.isdecimal()):
        raise PydanticCustomError("account", "takes exactly 12 digits")
    return value


Account = Annotated[Text, AfterValidator(_account), WithJsonSchema({"type": "string", "pattern": _ACCOUNT})]
