"""Resource types that live only here, driven by CloudFormation's own registry schemas.

cfn-lint ships the schemas. They say which properties exist and are legal, and which are create-only; each type below
adds what Ref and GetAtt give back.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import jsonschema
import regex
from cfnlint.schema import ResourceNotFoundError
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from fmblocks.local.server.engine import (
    Attributes,
    Created,
    Handler,
    Properties,
    before_delete,
    eks_cluster,
    environment,
    register,
    replaced_by_schema,
    show_resolved_values,
    unique,
)


@dataclass
class Record:
    """A live resource."""

    properties: Properties
    attributes: Attributes


@dataclass(frozen=True)
class SchemaType:
    """One type: ``identify`` makes the physical id, ``describe`` the attributes, from id and properties.

    ``refuse`` says what the service refuses to change although the schema allows it.
    """

    name: str
    identify: Callable[[], str]
    describe: Callable[[str, Properties], Attributes]
    refuse: Callable[[Properties, Properties], None] = field(default=lambda _old, _new: None)


# (account, Region, type) → id → record
_STORE: dict[tuple[str, str, str], dict[str, Record]] = {}


def live(resource_type: str) -> dict[str, Record]:
    """The live resources of a type in the caller's account and Region, by physical id."""
    return _STORE.setdefault((*environment(), resource_type), {})


def _arn(service: str, resource: str) -> str:
    account, region = environment()
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def _file_system(id: str, properties: Properties) -> Attributes:
    _account, region = environment()
    kind = {"RootVolumeId": f"fsvol-{unique()}"} if properties["FileSystemType"] == "OPENZFS" else {}
    return {
        "Id": id,
        "DNSName": f"{id}.fsx.{region}.amazonaws.com",
        **(kind or {"LustreMountName": unique(8)}),
        "ResourceARN": _arn("fsx", f"file-system/{id}"),
    }


def _file_system_change(old: Properties, new: Properties) -> None:
    """FSx refuses what it cannot do in place; CloudFormation shows its words."""
    for kind, key in (
        ("LustreConfiguration", "DeploymentType"),
        ("LustreConfiguration", "EfaEnabled"),
        ("OpenZFSConfiguration", "DeploymentType"),
    ):
        if old.get(kind, {}).get(key) != new.get(kind, {}).get(key):
            raise ValueError(f"{key} cannot be changed on an existing file system")
    if old.get("StorageType") != new.get("StorageType"):
        raise ValueError("StorageType cannot be changed on an existing file system")
    if int(new.get("StorageCapacity", 0)) < int(old.get("StorageCapacity", 0)):
        raise ValueError("Storage capacity can only be increased")


def _association(id: str, properties: Properties) -> Attributes:
    return {"AssociationId": id, "ResourceARN": _arn("fsx", f"association/{properties['FileSystemId']}/{id}")}


def _cluster(id: str, properties: Properties) -> Attributes:
    names = [one["InstanceGroupName"] for one in properties.get("InstanceGroups", [])]
    if len(set(names)) != len(names):
        raise ValueError("Instance group names must be unique within a cluster")
    arn = properties.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if arn is not None:
        control_plane = eks_cluster(arn.rsplit("/", 1)[1])
        if control_plane is None:
            raise ValueError(f"The EKS cluster {arn} does not exist")
        mode = control_plane.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP")
        if mode not in ("API", "API_AND_CONFIG_MAP"):
            raise ValueError(f"The authentication mode {mode} of {arn} is not supported")
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"ClusterArn": id, "ClusterStatus": "InService", "CreationTime": created, "FailureMessage": ""}


def _cluster_change(old: Properties, new: Properties) -> None:
    """What HyperPod refuses: another subnet of a group that is there."""
    before = {one["InstanceGroupName"]: one.get("OverrideVpcConfig") for one in old.get("InstanceGroups", [])}
    for one in new.get("InstanceGroups", []):
        name = one["InstanceGroupName"]
        if name in before and before[name] != one.get("OverrideVpcConfig"):
            raise ValueError(f"OverrideVpcConfig of instance group {name} cannot be updated")


def _governs(kind: str) -> Callable[[str, Properties], Attributes]:
    """A policy or a quota of a cluster that is there, with EKS."""

    def describe(arn: str, properties: Properties) -> Attributes:
        cluster = live("AWS::SageMaker::Cluster").get(properties["ClusterArn"])
        if cluster is None or "Eks" not in cluster.properties.get("Orchestrator", {}):
            raise ValueError(f"{properties['ClusterArn']} is no cluster with EKS")
        for other in live(f"AWS::SageMaker::{kind}").values():
            if [other.properties[key] for key in ("ClusterArn", "Name")] == [
                properties[key] for key in ("ClusterArn", "Name")
            ]:
                raise ValueError(f"{properties['Name']} already exists in {properties['ClusterArn']}")
        return {f"{kind}Arn": arn, f"{kind}Id": arn.rsplit("/", 1)[1], "Status": "Created"}

    return describe


def _quota_change(old: Properties, new: Properties) -> None:
    if old["ComputeQuotaTarget"]["TeamName"] != new["ComputeQuotaTarget"]["TeamName"]:
        raise ValueError("TeamName cannot be updated")


def _governed_cluster(arn: str) -> None:
    """HyperPod keeps a cluster that has quotas or a policy."""
    for kind in ("ClusterSchedulerConfig", "ComputeQuota"):
        for record in live(f"AWS::SageMaker::{kind}").values():
            if record.properties["ClusterArn"] == arn:
                raise ValueError(f"The cluster {arn} has the {kind} {record.properties['Name']} and may not be deleted")


def _nothing(_id: str, _properties: Properties) -> Attributes:
    return {}


def _attach(properties: Properties) -> Created:
    """The secret of a database that is there; nothing is written into it."""
    if properties["TargetId"] not in live("AWS::RDS::DBCluster"):
        raise ValueError(f"DBCluster {properties['TargetId']} not found")
    return str(properties["SecretId"]), {}


def _database(id: str, _properties: Properties) -> Attributes:
    """The record of a database: none is started."""
    _account, region = environment()
    host = f"{id}.cluster-{unique(12)}.{region}.rds.amazonaws.com"
    return {
        "DBClusterArn": _arn("rds", f"cluster:{id}"),
        "DBClusterResourceId": f"cluster-{unique(12)}",
        "Endpoint": {"Address": host, "Port": "3306"},
        "Endpoint.Address": host,
        "Endpoint.Port": "3306",
        "ReadEndpoint.Address": host.replace(".cluster-", ".cluster-ro-"),
    }


def _database_instance(id: str, properties: Properties) -> Attributes:
    cluster = properties["DBClusterIdentifier"]
    if cluster not in live("AWS::RDS::DBCluster"):
        raise ValueError(f"DBCluster {cluster} not found")
    return {"DBInstanceArn": _arn("rds", f"db:{id}")}


def _used_database(id: str) -> None:
    """RDS keeps a cluster that has instances."""
    for instance, record in live("AWS::RDS::DBInstance").items():
        if record.properties["DBClusterIdentifier"] == id:
            raise ValueError(f"Cluster {id} still contains {instance} and may not be deleted")


def _workspace(id: str, _properties: Properties) -> Attributes:
    _account, region = environment()
    name = id.rsplit("/", 1)[1]
    endpoint = f"https://aps-workspaces.{region}.amazonaws.com/workspaces/{name}/"
    return {"Arn": id, "WorkspaceId": name, "PrometheusEndpoint": endpoint}


def _placement_group(id: str, _properties: Properties) -> Attributes:
    return {"GroupName": id, "GroupId": f"pg-{unique()}"}


def _reservation(id: str, properties: Properties) -> Attributes:
    count = int(properties["InstanceCount"])
    return {
        "Id": id,
        "CapacityReservationArn": _arn("ec2", f"capacity-reservation/{id}"),
        "State": "active",
        "TotalInstanceCount": count,
        "AvailableInstanceCount": count,
    }


def _used_placement_group(id: str) -> None:
    """EC2 keeps a placement group that a reservation was made in (rule PG-14)."""
    for reservation, record in live("AWS::EC2::CapacityReservation").items():
        if str(record.properties.get("PlacementGroupArn", "")).endswith(f":placement-group/{id}"):
            raise ValueError(f"The placement group {id} is in use by {reservation} and may not be deleted")


def _pcs_cluster(arn: str, _properties: Properties) -> Attributes:
    """The controller has an address of the subnet; port 6817 is slurmctld's."""
    name = arn.rsplit("/", 1)[1]
    endpoint = {"Type": "SLURMCTLD", "PrivateIpAddress": "10.0.0.10", "Port": "6817"}
    return {"Arn": arn, "Id": name, "Status": "ACTIVE", "Endpoints": [endpoint]}


def _pcs_arn(kind: str) -> Callable[[], str]:
    return lambda: _arn("pcs", f"cluster/pcs/{kind}/pcs_{unique(10)}")


def _pcs_part(arn: str, properties: Properties) -> Attributes:
    """A node group or a queue of a cluster that is there."""
    if not any(record.attributes["Id"] == properties["ClusterId"] for record in live("AWS::PCS::Cluster").values()):
        raise ValueError(f"The cluster {properties['ClusterId']} does not exist")
    kind = "AWS::PCS::Queue" if "/queue/" in arn else "AWS::PCS::ComputeNodeGroup"
    for other in live(kind).values():
        same = [other.properties.get(key) == properties.get(key) for key in ("ClusterId", "Name")]
        if all(same) and properties.get("Name"):
            raise ValueError(f"{properties['Name']} already exists in the cluster {properties['ClusterId']}")
    return {"Arn": arn, "Id": arn.rsplit("/", 1)[1], "Status": "ACTIVE"}


TYPES = (
    SchemaType("AWS::EC2::PlacementGroup", lambda: f"group-{unique(12)}", _placement_group),
    SchemaType("AWS::EC2::CapacityReservation", lambda: f"cr-{unique()}", _reservation),
    SchemaType("AWS::FSx::FileSystem", lambda: f"fs-{unique()}", _file_system, refuse=_file_system_change),
    SchemaType("AWS::FSx::DataRepositoryAssociation", lambda: f"dra-{unique()}", _association),
    SchemaType(
        "AWS::SageMaker::Cluster",
        lambda: _arn("sagemaker", f"cluster/{unique(12)}"),
        _cluster,
        refuse=_cluster_change,
    ),
    SchemaType(
        "AWS::SageMaker::ClusterSchedulerConfig",
        lambda: _arn("sagemaker", f"cluster-scheduler-config/{unique(12)}"),
        _governs("ClusterSchedulerConfig"),
    ),
    SchemaType(
        "AWS::SageMaker::ComputeQuota",
        lambda: _arn("sagemaker", f"compute-quota/{unique(12)}"),
        _governs("ComputeQuota"),
        refuse=_quota_change,
    ),
    SchemaType("AWS::PCS::Cluster", lambda: _arn("pcs", f"cluster/pcs_{unique(10)}"), _pcs_cluster),
    SchemaType("AWS::PCS::ComputeNodeGroup", _pcs_arn("computenodegroup"), _pcs_part),
    SchemaType("AWS::PCS::Queue", _pcs_arn("queue"), _pcs_part),
    SchemaType("AWS::RDS::DBSubnetGroup", lambda: f"subnets-{unique(12)}", _nothing),
    SchemaType("AWS::RDS::DBClusterParameterGroup", lambda: f"parameters-{unique(12)}", _nothing),
    SchemaType("AWS::RDS::DBCluster", lambda: f"cluster-{unique(12)}", _database),
    SchemaType("AWS::RDS::DBInstance", lambda: f"instance-{unique(12)}", _database_instance),
    SchemaType("AWS::Budgets::Budget", lambda: f"budget-{unique(12)}", _nothing),
    SchemaType("AWS::APS::Workspace", lambda: _arn("aps", f"workspace/ws-{unique(12)}"), _workspace),
)


def install() -> None:
    """Register every type."""
    for type in TYPES:
        register(type.name, _handler(type))
    attach = Handler(
        _attach, lambda _id, _properties: None, lambda _id, _old, new: _attach(new), ("SecretId", "TargetId")
    )
    register("AWS::SecretsManager::SecretTargetAttachment", attach)
    before_delete("AWS::EC2::PlacementGroup", _used_placement_group)
    before_delete("AWS::SageMaker::Cluster", _governed_cluster)
    before_delete("AWS::RDS::DBCluster", _used_database)


def answer_like_cloudformation() -> None:
    """Last, when every type is there: replacements by the schemas, and the values of SSM parameters."""
    replaced_by_schema(_create_only)
    show_resolved_values()


def _create_only(resource_type: str) -> tuple[set[str], set[str]]:
    """What replaces a resource always, and what may; nested properties do not occur in what the examples change."""
    try:
        schema = _schema(resource_type)
    except ResourceNotFoundError:  # ministack has types that the Region lacks
        return set(), set()
    always, sometimes = (
        {path.removeprefix("/properties/") for path in schema.get(key, ())}
        for key in ("createOnlyProperties", "conditionalCreateOnlyProperties")
    )
    return {path for path in always if "/" not in path}, {path for path in sometimes if "/" not in path}


def _handler(type: SchemaType) -> Handler:
    def create(properties: Properties) -> Created:
        checked = validate(type.name, properties)
        id = type.identify()
        attributes = type.describe(id, checked)
        live(type.name)[id] = Record(checked, attributes)
        return id, attributes

    def update(id: str, old: Properties, new: Properties) -> Created:
        checked = validate(type.name, new)
        type.refuse(validate(type.name, old), checked)
        record = live(type.name)[id]
        record.properties = checked
        return id, record.attributes

    def delete(id: str, _properties: Properties) -> None:
        live(type.name).pop(id, None)

    always, _sometimes = _create_only(type.name)
    return Handler(create, delete, update, tuple(always))


@functools.cache
def _schema(resource_type: str) -> dict[str, Properties]:
    schema: dict[str, Properties] = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", resource_type).schema
    return schema


def validate(resource_type: str, properties: Properties) -> Properties:
    """The properties with their registry types, or ValueError with CloudFormation's words."""
    schema = _schema(resource_type)
    typed = _typed(properties, schema, schema)
    read_only = {path.removeprefix("/properties/") for path in schema.get("readOnlyProperties", [])}
    if unsupported := sorted(read_only & set(typed)):
        raise ValueError(f"Encountered unsupported property {unsupported[0]}")
    kept = ("properties", "definitions", "required", "additionalProperties", "type", "anyOf", "allOf", "oneOf")
    validator = _Validator({key: schema[key] for key in kept if key in schema})
    errors = sorted(validator.iter_errors(typed), key=lambda error: [str(part) for part in error.path])
    if errors:
        where = "/".join(str(part) for part in errors[0].path)
        raise ValueError(f"Properties validation failed for resource with message: #/{where}: {errors[0].message}")
    return typed


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[jsonschema.ValidationError]:
    """Registry patterns are written for Java: \\p{L} and the like, which Python's own re does not know.

    That of PlacementGroupArn holds a stray ^ that no ARN can match (rule CR-18); whether CloudFormation looks at it
    nobody has told, and it would make the property useless, so here it is not.
    """
    pattern = pattern.replace("placement-group/^", "placement-group/")
    if isinstance(value, str) and not regex.search(pattern, value):
        yield jsonschema.ValidationError(f"string [{value}] does not match pattern {pattern}")


_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator, {"pattern": _pattern}
)


def _typed(value: object, schema: Properties, root: Properties) -> Properties:
    """CloudFormation takes "1200" for an integer and "true" for a boolean; the schema does not."""
    while "$ref" in schema:
        schema = functools.reduce(lambda node, key: node[key], schema["$ref"].lstrip("#/").split("/"), root)
    types = schema.get("type", [])
    typed: object = value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        typed = {key: _typed(item, properties.get(key, {}), root) for key, item in value.items()}
    elif isinstance(value, list):
        items = schema.get("items", {})
        typed = [_typed(item, items if isinstance(items, dict) else {}, root) for item in value]
    elif isinstance(value, str) and "integer" in types and value.lstrip("-").isdecimal():
        typed = int(value)
    elif isinstance(value, str) and "boolean" in types and value.lower() in ("true", "false"):
        typed = value.lower() == "true"
    return typed  # type: ignore[return-value]
