"""A group of reservations that launches name as one."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_resourcegroups as resourcegroups
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.capacity.settings import CapacityMode, Tenancy


class CapacityReservationGroup(cdk.Resource):
    """A resource group of reservations, for fleets that take from whichever has room.

    Only a group whose members are named can be launched into, and it carries two configuration types; one by tag query
    is refused or not used (rule CR-15). Source: EC2 User Guide, *Create a Capacity Reservation group*.

    Args:
        capacity_reservation_arns: ARNs of reservations of this account and region, or shared with it.
        availability_zone: where they all stand. Default: not known, so it is not compared with the nodes' subnet.
        group_name: default: a name from the path of this construct, which AWS requires; create-only.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        capacity_reservation_arns: Sequence[str],
        availability_zone: str | None = None,
        group_name: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._availability_zone = availability_zone
        reservations = resourcegroups.CfnGroup.ConfigurationParameterProperty(
            name="allowed-resource-types", values=["AWS::EC2::CapacityReservation"]
        )
        self.resource = resourcegroups.CfnGroup(
            self,
            "Resource",
            # 128 is what the name of the registry's schema may have; names that begin with aws are refused.
            name=group_name or "cr-" + cdk.Names.unique_resource_name(self, max_length=125),
            configuration=[
                resourcegroups.CfnGroup.ConfigurationItemProperty(type="AWS::EC2::CapacityReservationPool"),
                resourcegroups.CfnGroup.ConfigurationItemProperty(
                    type="AWS::ResourceGroups::Generic", parameters=[reservations]
                ),
            ],
            resources=list(capacity_reservation_arns),
        )

    @property
    def capacity_mode(self) -> CapacityMode:
        """Reserved on demand."""
        return CapacityMode.ODCR

    @property
    def capacity_reservation_id(self) -> str | None:
        """None: the group is named."""
        return None

    @property
    def resource_group_arn(self) -> str | None:
        """The ARN that launches name."""
        return self.resource.attr_arn

    @property
    def training_plan_arn(self) -> str | None:
        """None."""
        return None

    @property
    def placement_group(self) -> None:
        """None: reservations of one placement group are named by their ids."""
        return None

    @property
    def availability_zone(self) -> str | None:
        """Where its reservations stand, when that was told."""
        return self._availability_zone

    @property
    def tenancy(self) -> Tenancy:
        """Instances on shared hardware."""
        return Tenancy.DEFAULT
