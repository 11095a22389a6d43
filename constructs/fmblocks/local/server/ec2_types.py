"""EC2 resource types whose operations ministack has, but not the CloudFormation side; and EC2's refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmblocks.compute.images import IMAGE_PARAMETERS
from fmblocks.local.server.engine import (
    Created,
    Handler,
    Properties,
    after_create,
    allow_members_in_default_group,
    before_delete,
    bucket_is_empty,
    call_ec2,
    eks_networks,
    override_ec2,
    publish_image,
    register,
    unique,
    write_access_log,
)
from fmblocks.local.server.schema_types import live


def install() -> None:
    """Register the types, the refusals, and the images that public parameters name."""
    for parameter in IMAGE_PARAMETERS:
        publish_image(parameter)
    register("AWS::EC2::EIP", Handler(_allocate, _release, create_only=("Domain",)))
    register("AWS::EC2::NatGateway", Handler(_create_nat, _delete_nat, create_only=("SubnetId", "AllocationId")))
    register(
        "AWS::EC2::FlowLog",
        Handler(_create_flow_log, _delete_flow_log, create_only=("ResourceId", "LogGroupName", "TrafficType")),
    )
    for direction, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        register(f"AWS::EC2::SecurityGroup{direction}", _rule_handler(direction, peer))
    after_create("AWS::EC2::VPC", lambda _properties, attributes: allow_members_in_default_group(attributes))
    after_create("AWS::S3::Bucket", lambda properties, _attributes: _log_access(properties))

    before_delete("AWS::EC2::Subnet", _raise_when_used)
    before_delete("AWS::EC2::SecurityGroup", _raise_when_used)
    before_delete("AWS::S3::Bucket", _refuse_full_bucket)
    override_ec2("DeleteSubnet", lambda parameters: _used(_first(parameters, "SubnetId")))
    override_ec2("DeleteSecurityGroup", lambda parameters: _used(_first(parameters, "GroupId")))


def _allocate(_properties: Properties) -> Created:
    answer = call_ec2("AllocateAddress", Domain="vpc")
    address = _text(answer, "publicIp")
    return address, {"PublicIp": address, "AllocationId": _text(answer, "allocationId")}


def _release(address: str, _properties: Properties) -> None:
    for item in call_ec2("DescribeAddresses").iter("item"):
        if item.findtext("publicIp") == address:
            call_ec2("ReleaseAddress", AllocationId=item.findtext("allocationId"))


def _create_nat(properties: Properties) -> Created:
    answer = call_ec2("CreateNatGateway", SubnetId=properties["SubnetId"], AllocationId=properties.get("AllocationId"))
    id = _text(answer, "natGatewayId")
    return id, {"NatGatewayId": id}


def _delete_nat(id: str, _properties: Properties) -> None:
    call_ec2("DeleteNatGateway", NatGatewayId=id)


def _create_flow_log(properties: Properties) -> Created:
    answer = call_ec2(
        "CreateFlowLogs",
        ResourceId__1=properties["ResourceId"],
        ResourceType=properties["ResourceType"],
        TrafficType=properties.get("TrafficType"),
        LogGroupName=properties["LogGroupName"],
        DeliverLogsPermissionArn=properties["DeliverLogsPermissionArn"],
    )
    id = _text(answer, "flowLogIdSet/item")
    return id, {"Id": id}


def _delete_flow_log(id: str, _properties: Properties) -> None:
    call_ec2("DeleteFlowLogs", FlowLogId__1=id)


def _rule_handler(direction: str, peer: str) -> Handler:
    """Rules are known by what they say; EC2 revokes them by the same words."""

    def words(properties: Properties) -> dict[str, str | None]:
        return {
            "GroupId": properties["GroupId"],
            "IpPermissions__1__IpProtocol": str(properties["IpProtocol"]),
            "IpPermissions__1__FromPort": _number(properties.get("FromPort")),
            "IpPermissions__1__ToPort": _number(properties.get("ToPort")),
            "IpPermissions__1__Groups__1__GroupId": properties[peer],
        }

    def create(properties: Properties) -> Created:
        call_ec2(f"AuthorizeSecurityGroup{direction}", **words(properties))
        id = f"sgr-{unique()}"
        return id, {"Id": id}

    def delete(_id: str, properties: Properties) -> None:
        call_ec2(f"RevokeSecurityGroup{direction}", **words(properties))

    return Handler(create, delete, create_only=("GroupId", "IpProtocol", "FromPort", "ToPort", peer))


def _used(id: str) -> str | None:
    """EC2's words when a live file system or cluster has network interfaces in ``id``."""
    for record in live("AWS::FSx::FileSystem").values():
        if id in (*record.properties["SubnetIds"], *record.properties.get("SecurityGroupIds", ())):
            return f"resource {id} has a dependent object"
    for record in live("AWS::SageMaker::Cluster").values():
        network = record.properties.get("VpcConfig", {})
        if id in (*network.get("Subnets", ()), *network.get("SecurityGroupIds", ())):
            return f"resource {id} has a dependent object"
    if any(id in network for _, network in eks_networks()):
        return f"resource {id} has a dependent object"
    return None


def _raise_when_used(id: str) -> None:
    if message := _used(id):
        raise ValueError(message)


def _log_access(properties: Properties) -> None:
    """S3 writes into a log bucket within minutes; here at once, so that no log bucket is ever empty."""
    logged = properties.get("LoggingConfiguration", {})
    if "DestinationBucketName" in logged:
        write_access_log(logged["DestinationBucketName"], logged.get("LogFilePrefix", ""))


def _refuse_full_bucket(name: str) -> None:
    if not bucket_is_empty(name):
        raise ValueError(f"The bucket you tried to delete is not empty: {name}")


def _first(parameters: Mapping[str, Any], name: str) -> str:
    value = parameters.get(name, "")
    return str(value[0] if isinstance(value, list) else value)


def _number(value: object) -> str | None:
    return None if value is None else str(value)


def _text(answer: Any, path: str) -> str:
    found = answer.findtext(f".//{path}")
    if not found:
        raise ValueError(f"the answer holds no {path}")
    return str(found)
