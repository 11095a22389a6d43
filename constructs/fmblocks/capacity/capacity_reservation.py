"""An On-Demand Capacity Reservation."""

from __future__ import annotations

from datetime import UTC, datetime

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, label, member, typed, unresolved, with_zone
from fmblocks._tags import TagSpecifications
from fmblocks.capacity import rules
from fmblocks.capacity.bought import ICapacity
from fmblocks.capacity.settings import Capacity, CapacityMode, CreateReservation, Match, Tenancy
from fmblocks.catalog import normalise, parse_zone
from fmblocks.compute import rules as compute_rules  # noqa: F401  registers FMB-09
from fmblocks.compute.efa_placement_group import placement_of
from fmblocks.compute.settings import InstancePlatform
from fmblocks.network import rules as network_rules  # noqa: F401  registers FMB-01


@jsii.implements(cdk.ITaggableV2)
class CapacityReservation(cdk.Resource):
    """Instances of one type that are kept free in one zone, and billed from creation, used or not.

    Destroying it cancels the reservation and stops the bill; a change that replaces it (type, zone, platform, tenancy,
    placement group) keeps the old one until you cancel it, since the new one needs the capacity a second time and may
    not get it. Source: EC2 User Guide, *On-Demand Capacity Reservations*.

    Args:
        instance_type: EC2 or ``ml.`` name.
        instance_count: instances, 1 to 1000.
        availability_zone: zone id or name; it should be that of the nodes.
        match: targeted (only instances that name it) or open. Default: targeted.
        end: when it ends by itself, within the hour after. Default: never.
        platform: what the instances' image runs; instances of another platform never match. Default: Linux/UNIX.
        tenancy: default: default.
        placement_group: a cluster placement group to make it in; create-only. Default: none.
        removal_policy: of the reservation itself. Default: DESTROY, which stops the bill.

    Raises:
        FindingsError: rules CR-03, CR-04, CR-05, CR-06, FMB-01, FMB-09, PG-12.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        instance_type: str,
        instance_count: int,
        availability_zone: str,
        match: Match = Match.TARGETED,
        end: datetime | None = None,
        platform: InstancePlatform = InstancePlatform.LINUX_UNIX,
        tenancy: Tenancy = Tenancy.DEFAULT,
        placement_group: ec2.IPlacementGroup | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> None:
        super().__init__(scope, id)
        with_zone("end", end)
        match = member(Match, match, "match")
        tenancy = member(Tenancy, tenancy, "tenancy")
        platform = member(InstancePlatform, platform, "platform")
        kind = instance_type if unresolved(instance_type) else normalise(instance_type)
        region = cdk.Stack.of(self).region
        check_arguments(
            self,
            # Before CDK has looked a VPC up, its zones are stand-ins.
            (*rules.RESERVATION_CONSTRUCT, "FMB-09", "PG-12", *(() if _stand_in(availability_zone) else ("FMB-01",))),
            {
                "instance_type": kind,
                "types": instance_types(self),
                "capacity": Capacity(mode=CapacityMode.ODCR, create=CreateReservation.model_construct(end=end)),
                "count": instance_count,
                "availability_zones": [availability_zone],
                "region": None if unresolved(region) else region,
                "placement": placement_of(placement_group),
            },
            names={
                "count": "instance_count",
                "availability_zones": "availability_zone",
                "placement.mode": "placement_group",
            },
        )
        self.instance_type = kind
        self.platform = platform
        self._availability_zone = availability_zone
        self._placement_group = placement_group
        self._tenancy = tenancy
        self.match = match
        # It is billed from the day it is made, so whose it is must be told (rule CR-21).
        self.tags = cdk.TagManager(cdk.TagType.STANDARD, "AWS::EC2::CapacityReservation")
        zone = parse_zone(availability_zone)
        by_id = zone is not None and zone.by_id
        self.resource = ec2.CfnCapacityReservation(
            self,
            "Resource",
            instance_type=kind,
            instance_count=instance_count,
            instance_platform=platform,
            availability_zone=None if by_id else availability_zone,
            availability_zone_id=availability_zone if by_id else None,
            instance_match_criteria=match,
            tenancy=tenancy,
            # CR-01: the two go together, and without an end the type is written too.
            end_date_type="limited" if end else "unlimited",
            end_date=end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if end else None,
            placement_group_arn=self._group_arn(placement_group) if placement_group else None,
            tag_specifications=cdk.Lazy.any(
                TagSpecifications(self.tags, "capacity-reservation", own={"Name": label(self)})
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        # A replacement is made before the old one goes: cancelling that first could lose both.
        self.resource.cfn_options.update_replace_policy = cdk.CfnDeletionPolicy.RETAIN

    def _group_arn(self, group: ec2.IPlacementGroup) -> str:
        # CloudFormation gives no ARN (PG-08), and a literal one is refused by its own pattern (CR-18).
        return cdk.Stack.of(self).format_arn(
            service="ec2", resource="placement-group", resource_name=group.placement_group_name
        )

    @property
    def cdk_tag_manager(self) -> cdk.TagManager:
        """The tags of the reservation."""
        return self.tags

    @property
    def capacity_mode(self) -> CapacityMode:
        """Reserved on demand."""
        return CapacityMode.ODCR

    @property
    def capacity_reservation_id(self) -> str:
        """The id, ``cr-…``."""
        return self.resource.attr_id

    @property
    def capacity_reservation_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_capacity_reservation_arn

    @property
    def resource_group_arn(self) -> str | None:
        """None: it is named by its id."""
        return None

    @property
    def training_plan_arn(self) -> str | None:
        """None."""
        return None

    @property
    def placement_group(self) -> ec2.IPlacementGroup | None:
        """The placement group it was made in: its instances name the same one or none (rule PG-13)."""
        return self._placement_group

    @property
    def availability_zone(self) -> str:
        """Where it stands."""
        return self._availability_zone

    @property
    def tenancy(self) -> Tenancy:
        """Its instances have the same."""
        return self._tenancy

    def metric(self, metric_name: str, *, statistic: str = cloudwatch.Stats.AVERAGE) -> cloudwatch.Metric:
        """A metric of the reservation, by its name in the namespace AWS/EC2CapacityReservations."""
        return cloudwatch.Metric(
            namespace="AWS/EC2CapacityReservations",
            metric_name=metric_name,
            dimensions_map={"CapacityReservationId": self.capacity_reservation_id},
            statistic=statistic,
        )

    def metric_available_instance_count(self) -> cloudwatch.Metric:
        """Reserved instances that are not used, and billed (AvailableInstanceCount, average over five minutes)."""
        return self.metric("AvailableInstanceCount")

    def metric_instance_utilization(self) -> cloudwatch.Metric:
        """Percent of the reserved instances that run (InstanceUtilization, average over five minutes)."""
        return self.metric("InstanceUtilization")

    @staticmethod
    def from_capacity_reservation_id(
        scope: Construct,
        id: str,
        *,
        capacity_reservation_id: str,
        availability_zone: str | None = None,
        placement_group: ec2.IPlacementGroup | None = None,
        tenancy: Tenancy = Tenancy.DEFAULT,
    ) -> ICapacity:
        """A reservation that was made elsewhere, or is shared with this account.

        Args:
            capacity_reservation_id: ``cr-…``.
            availability_zone: where it stands. Default: not known, so it is not compared with the nodes' subnet.
            placement_group: the one it was made in. Default: none.
            tenancy: that of its instances.

        Raises:
            FindingsError: rule FMB-25.
        """
        imported = _Imported(scope, id, capacity_reservation_id, None, availability_zone, placement_group, tenancy)
        if not unresolved(capacity_reservation_id):
            given = Capacity(mode=CapacityMode.ODCR, capacity_reservation_id=capacity_reservation_id)
            names = {"capacity.capacity_reservation_id": "capacity_reservation_id"}
            check_arguments(imported, ("FMB-25",), {"capacity": given}, names=names)
        return imported

    @staticmethod
    def from_resource_group_arn(
        scope: Construct, id: str, *, resource_group_arn: str, availability_zone: str | None = None
    ) -> ICapacity:
        """A resource group of reservations, which carries the configuration types that rule CR-15 names.

        Args:
            resource_group_arn: ``arn:aws:resource-groups:…:group/…``.
            availability_zone: where its reservations stand. Default: not known.
        """
        return _Imported(scope, id, None, resource_group_arn, availability_zone, None, Tenancy.DEFAULT)


def _stand_in(zone: str) -> bool:
    return zone.startswith("dummy1")


class _Imported(cdk.Resource):
    def __init__(
        self,
        scope: Construct,
        id: str,
        capacity_reservation_id: str | None,
        resource_group_arn: str | None,
        availability_zone: str | None,
        placement_group: ec2.IPlacementGroup | None,
        tenancy: Tenancy,
    ) -> None:
        super().__init__(scope, id)
        self.capacity_mode = CapacityMode.ODCR
        self.capacity_reservation_id = capacity_reservation_id
        self.resource_group_arn = resource_group_arn
        self.training_plan_arn: str | None = None
        self.placement_group = placement_group
        self.availability_zone = availability_zone
        self.tenancy = tenancy
