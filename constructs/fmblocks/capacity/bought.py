"""What a consumer of capacity has to know about it, whichever way it was bought.

CloudFormation can make neither a Capacity Block nor a training plan (rule CB-01), so these are descriptions of what was
bought, and no constructs.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from fmblocks.capacity.settings import CapacityMode, Tenancy

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2


class ICapacity(Protocol):
    """Where instances come from. The wrong consumer is refused by rules X-02 and X-03."""

    @property
    def capacity_mode(self) -> CapacityMode: ...
    @property
    def capacity_reservation_id(self) -> str | None: ...
    @property
    def resource_group_arn(self) -> str | None: ...
    @property
    def training_plan_arn(self) -> str | None: ...
    @property
    def placement_group(self) -> ec2.IPlacementGroup | None: ...
    @property
    def availability_zone(self) -> str | None: ...
    @property
    def tenancy(self) -> Tenancy: ...


class _Bought:
    """The attributes of :class:`ICapacity`, none of which a way of buying has but those it names."""

    def __init__(
        self,
        capacity_mode: CapacityMode,
        *,
        capacity_reservation_id: str | None = None,
        training_plan_arn: str | None = None,
        availability_zone: str | None = None,
    ) -> None:
        self.capacity_mode = capacity_mode
        self.capacity_reservation_id = capacity_reservation_id
        self.resource_group_arn: str | None = None
        self.training_plan_arn = training_plan_arn
        self.placement_group: ec2.IPlacementGroup | None = None
        self.availability_zone = availability_zone
        self.tenancy = Tenancy.DEFAULT


class OnDemandCapacity(_Bought):
    """Instances as EC2 has them."""

    def __init__(self) -> None:
        super().__init__(CapacityMode.ON_DEMAND)


class SpotCapacity(_Bought):
    """Spare instances, which EC2 takes away when it needs them."""

    def __init__(self) -> None:
        super().__init__(CapacityMode.SPOT)


class CapacityBlock(_Bought):
    """A Capacity Block for ML: instances for a time, paid in advance (EC2 User Guide, *Capacity Blocks for ML*).

    Args:
        capacity_reservation_id: ``cr-…``.
        availability_zone: where it stands. Default: not known, so it is not compared with the nodes' subnet.
        start: when it begins, with its time zone. Default: not known.
        end: when it ends; EC2 terminates its instances 30 minutes before, UltraServers 60. Default: not known.
    """

    def __init__(
        self,
        *,
        capacity_reservation_id: str,
        availability_zone: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        super().__init__(
            CapacityMode.CAPACITY_BLOCK,
            capacity_reservation_id=capacity_reservation_id,
            availability_zone=availability_zone,
        )
        self.start = start
        self.end = end


class TrainingPlan(_Bought):
    """A SageMaker training plan, which feeds HyperPod (SageMaker AI Developer Guide, *Reserve training plans*).

    Args:
        training_plan_arn: its ARN.
        availability_zone: where its instances stand. Default: not known.
    """

    def __init__(self, *, training_plan_arn: str, availability_zone: str | None = None) -> None:
        super().__init__(
            CapacityMode.TRAINING_PLAN, training_plan_arn=training_plan_arn, availability_zone=availability_zone
        )
