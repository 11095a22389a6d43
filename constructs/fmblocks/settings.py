"""What all settings have in common: frozen pydantic models that know their foreign keys.

A project file arrives as text (see :mod:`fmblocks.document`), so the types below turn text into numbers and words.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError


class Settings(BaseModel):
    """Base of every model a user writes.

    ``FOREIGN`` names keys that people bring from other tools, or that belong to a subject which this version does not
    build, with what to do instead: they are refused with that text, not as unknown keys. ``FOREIGN_RULES`` names the
    rule of those that have one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    FOREIGN: ClassVar[Mapping[str, str]] = {}
    FOREIGN_RULES: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_foreign(cls, values: object) -> object:
        """`teams: []` asks for nothing, so it is not refused; `training:` with nothing below it is a mistake."""
        if not isinstance(values, dict):
            return values
        for key, value in values.items():
            if value is None and key in cls.model_fields and _holds_settings(cls, key):
                raise PydanticCustomError("empty", "has nothing below it", {"key": key})
        return {key: value for key, value in values.items() if key not in cls.FOREIGN or value not in (None, [], {})}


def _holds_settings(model: type[BaseModel], key: str) -> bool:
    annotation = model.model_fields[key].annotation
    parts = (annotation, *typing.get_args(annotation))
    return any(isinstance(part, type) and issubclass(part, Settings) for part in parts)


def _number(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch(r"-?\d+", value)):
        raise PydanticCustomError("number", "must be a whole number")
    return value


def _decimal(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch(r"-?\d+(\.\d+)?", value)):
        raise PydanticCustomError("spelled", "is not {form}", {"form": "a number like 0.5"})
    return value


def snake_case(text: str) -> str:
    """``InstanceStress`` and ``PERSISTENT_2`` as our files spell them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text.strip()).lower()


def pascal_case(text: str) -> str:
    """``instance_stress`` as AWS spells it."""
    return "".join(part.capitalize() for part in text.split("_"))


def _words(value: object) -> object:
    return snake_case(value) if isinstance(value, str) else value


def _text(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("text", "must be text: put quotes around it")
    return value


def spelled(pattern: str, form: str) -> Callable[[str], str]:
    """A validator for text of one form, which a wrong value's message names."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise PydanticCustomError("spelled", "is not {form}", {"form": form})
        return value

    return check


# A count: `true` is no number, although Python thinks that it is 1.
WholeNumber = Annotated[int, BeforeValidator(_number)]
# A size: `true` is none either.
Number = Annotated[float, BeforeValidator(_decimal)]
# Text in which YAML's `true` has no place.
Text = Annotated[str, BeforeValidator(_text)]
# Put before an enum: AWS spells its values in capitals, our files in small letters; both are read.
AnyCase = BeforeValidator(_words)

# Legal for CloudFormation, HyperPod, EKS, PCS and Slurm at once.
_NAME = r"^(?=.{3,25}$)[a-z][a-z0-9]*(-[a-z0-9]+)*$"


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise PydanticCustomError(
            "name", "takes 3 to 25 small letters, digits and single inner hyphens, and begins with a letter"
        )
    return value


Name = Annotated[Text, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": _NAME})]

Email = Annotated[Text, AfterValidator(spelled(r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address"))]
