"""What a project file says about the project itself."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from fmblocks.settings import Settings, Text

_ACCOUNT = r"^\d{12}$"


def _account(value: str) -> str:
    if not (len(value) == 12 and value.isascii() and value.isdecimal()):
        raise PydanticCustomError("account", "takes exactly 12 digits")
    return value


Account = Annotated[Text, AfterValidator(_account), WithJsonSchema({"type": "string", "pattern": _ACCOUNT})]


class Suppression(Settings):
    """A rule that a project does without, and why."""

    rule: Text
    reason: Annotated[Text, Field(description="why the rule does not matter here; it is printed with the plan")]


class Access(Settings):
    """Who reaches the cluster."""

    FOREIGN: ClassVar = {
        "users": "this version has no users yet: leave the key out",
        "masters": "the key is admins",
        "masters_role": "the key is admins",
        "admin_role_arn": "the key is admins",
    }

    admins: Annotated[
        tuple[Text, ...], Field(description="ARNs of IAM roles and users that administer Kubernetes")
    ] = ()
