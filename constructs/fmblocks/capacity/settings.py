"""What a project file says about where the instances of a group come from."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.compute.settings import InstancePlatform, Platform
from fmblocks.settings import AnyCase, Settings, Text


class CapacityMode(StrEnum):
    """How the instances of a group are bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    TRAINING_PLAN = "training_plan"
    ODCR = "odcr"
    CAPACITY_BLOCK = "capacity_block"


class Match(StrEnum):
    """Which instances run in a reservation (API CreateCapacityReservation, InstanceMatchCriteria)."""

    OPEN = "open"
    TARGETED = "targeted"


class Tenancy(StrEnum):
    """Whose instances share the hardware (API CreateCapacityReservation, Tenancy)."""

    DEFAULT = "default"
    DEDICATED = "dedicated"


class Launch(StrEnum):
    """When the instances of a Capacity Block are started."""

    SCHEDULED = "scheduled"
    NOW = "now"


def _instant(value: object) -> object:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise PydanticCustomError("instant", "takes a time with its zone, like 2026-12-20T11:30:00Z")
    return found


Instant = Annotated[datetime, BeforeValidator(_instant)]


class CreateReservation(Settings):
    """An On-Demand Capacity Reservation to create, for as many instances as the group has nodes."""

    FOREIGN: ClassVar = {
        "count": "the group's count is reserved: leave the key out",
        "instance_count": "the group's count is reserved: leave the key out",
        "instance_type": "the group's type is reserved: leave the key out",
        "end_date": "the key is end",
        "end_date_type": "it follows from end: leave the key out",
        "placement_group_arn": "write placement: cluster, and the reservation is made in that group",
        "instance_match_criteria": "the key is match",
        "start": "CloudFormation cannot create future-dated reservations: make it with the EC2 API and give "
        "capacity_reservation_id",
        "commitment_days": "CloudFormation cannot create future-dated reservations: make it with the EC2 API and give "
        "capacity_reservation_id",
    }

    FOREIGN_RULES: ClassVar = {"start": "CR-10", "commitment_days": "CR-10", "end_date_type": "CR-01"}

    match: Annotated[Match, AnyCase] = Match.TARGETED
    tenancy: Annotated[Tenancy, AnyCase] = Tenancy.DEFAULT
    platform: Annotated[Platform, Field(description="what the image runs; instances of another one never match")] = (
        InstancePlatform.LINUX_UNIX
    )
    end: Annotated[Instant | None, Field(description="when the reservation ends by itself; default: never")] = None


class Capacity(Settings):
    """Where the instances of a group come from."""

    FOREIGN: ClassVar = {
        "reservation_id": "the key is capacity_reservation_id",
        "reservation_ids": "a group takes one reservation: make a group for each and give capacity_reservation_id",
        "capacity_reservation_ids": "a group takes one reservation: make a group for each",
        "arn": "the key is training_plan_arn",
    }

    mode: Annotated[CapacityMode, AnyCase] = CapacityMode.ON_DEMAND
    training_plan_arn: Annotated[Text | None, Field(description="with mode training_plan")] = None
    capacity_reservation_id: Annotated[Text | None, Field(description="with modes odcr and capacity_block")] = None
    resource_group_arn: Annotated[Text | None, Field(description="a group of reservations, with mode odcr")] = None
    create: Annotated[CreateReservation | None, Field(description="make the reservation, with mode odcr")] = None
    availability_zone: Annotated[Text | None, Field(description="zone of a Capacity Block or reservation")] = None
    start: Annotated[Instant | None, Field(description="of a Capacity Block")] = None
    end: Annotated[Instant | None, Field(description="of a Capacity Block")] = None
    launch: Annotated[Launch | None, AnyCase] = None
