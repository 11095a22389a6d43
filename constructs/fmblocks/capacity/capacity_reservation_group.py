"""A group of reservations that launches name as one."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
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
        self.capacity_mode = CapacityMode.ODCR
        self.capacity_reservation_id: str | None = None
        self.resource_group_arn: str | None = self.resource.attr_arn
        self.training_plan_arn: str | None = None
        # Reservations of one placement group are named by their ids.
        self.placement_group: ec2.IPlacementGroup | None = None
        self.availability_zone = availability_zone
        self.tenancy = Tenancy.DEFAULT
