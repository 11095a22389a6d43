"""Operations of the services that ministack lacks: what the README's commands look around with.

The operations are plain functions over the CloudFormation store; the wire formats come from botocore's models and
moto's parsers and serializers.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from botocore.exceptions import ClientError
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.datastructures import Headers, MultiDict

from fmblocks.local.server.engine import Response, Serve, mount
from fmblocks.local.server.schema_types import Record, live

Operation = Callable[[Mapping[str, Any]], dict[str, Any]]


class ServiceError(Exception):
    """An error that a service answers with."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def _describe_file_systems(request: Mapping[str, Any]) -> dict[str, Any]:
    found = live("AWS::FSx::FileSystem")
    ids = request.get("FileSystemIds") or list(found)
    for id in ids:
        if id not in found:
            raise ServiceError("FileSystemNotFound", f"File system '{id}' does not exist.")
    return {"FileSystems": [_file_system(id, found[id]) for id in ids]}


def _file_system(id: str, record: Record) -> dict[str, Any]:
    properties, attributes = record.properties, record.attributes
    copied = ("FileSystemType", "StorageCapacity", "StorageType", "SubnetIds", "KmsKeyId", "FileSystemTypeVersion")
    return {
        **{key: properties[key] for key in copied if key in properties},
        "FileSystemId": id,
        "Lifecycle": "AVAILABLE",
        "DNSName": attributes["DNSName"],
        "ResourceARN": attributes["ResourceARN"],
        **_configuration(properties, attributes),
    }


def _configuration(properties: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    if properties["FileSystemType"] == "OPENZFS":
        root = {"RootVolumeId": attributes["RootVolumeId"]}
        kept = ("DeploymentType", "ThroughputCapacity", "AutomaticBackupRetentionDays")
        return {"OpenZFSConfiguration": {**_only(properties["OpenZFSConfiguration"], kept), **root}}
    lustre = {
        key: value for key, value in properties.get("LustreConfiguration", {}).items() if key != "LogConfiguration"
    }
    return {"LustreConfiguration": {**lustre, "MountName": attributes["LustreMountName"]}}


def _only(values: Mapping[str, Any], kept: tuple[str, ...]) -> dict[str, Any]:
    return {key: values[key] for key in kept if key in values}


def _delete_file_system(request: Mapping[str, Any]) -> dict[str, Any]:
    found, id = live("AWS::FSx::FileSystem"), request["FileSystemId"]
    if id not in found:
        raise ServiceError("FileSystemNotFound", f"File system '{id}' does not exist.")
    del found[id]
    return {"FileSystemId": id, "Lifecycle": "DELETING"}


def _describe_backups(_request: Mapping[str, Any]) -> dict[str, Any]:
    return {"Backups": []}  # nothing here makes one


def _delete_workspace(request: Mapping[str, Any]) -> dict[str, Any]:
    found = live("AWS::APS::Workspace")
    for arn, record in found.items():
        if record.attributes["WorkspaceId"] == request["workspaceId"]:
            del found[arn]
            return {}
    raise ServiceError("ResourceNotFoundException", f"Workspace not found: {request['workspaceId']}", 404)


def _describe_associations(_request: Mapping[str, Any]) -> dict[str, Any]:
    copied = ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "S3")
    return {
        "Associations": [
            {
                "AssociationId": id,
                "Lifecycle": "AVAILABLE",
                **{key: record.properties[key] for key in copied if key in record.properties},
            }
            for id, record in live("AWS::FSx::DataRepositoryAssociation").items()
        ]
    }


def _describe_cluster(request: Mapping[str, Any]) -> dict[str, Any]:
    for arn, record in live("AWS::SageMaker::Cluster").items():
        if request["ClusterName"] in (arn, _cluster_name(arn, record)):
            copied = ("InstanceGroupName", "InstanceType", "ExecutionRole", "LifeCycleConfig", "TrainingPlanArn")
            return {
                **_cluster_summary(arn, record),
                "InstanceGroups": [
                    {
                        **{key: group[key] for key in copied if key in group},
                        "CurrentCount": group["InstanceCount"],
                        "TargetCount": group["InstanceCount"],
                        "Status": "InService",
                    }
                    for group in record.properties.get("InstanceGroups", [])
                ],
                "VpcConfig": record.properties.get("VpcConfig"),
                "NodeRecovery": record.properties.get("NodeRecovery"),
                **(
                    {"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}}
                    if record.properties.get("AutoScaling", {}).get("Mode") == "Enable"
                    else {}
                ),
            }
    raise ServiceError("ResourceNotFound", f"Cluster {request['ClusterName']} not found")


def _list_cluster_nodes(request: Mapping[str, Any]) -> dict[str, Any]:
    """Every node that a cluster asks for runs at once."""
    for arn, record in live("AWS::SageMaker::Cluster").items():
        if request["ClusterName"] in (arn, _cluster_name(arn, record)):
            return {
                "ClusterNodeSummaries": [
                    {
                        "InstanceGroupName": group["InstanceGroupName"],
                        "InstanceId": f"i-{at:017x}",
                        "InstanceType": group.get("InstanceType"),
                        "LaunchTime": time.time(),
                        "InstanceStatus": {"Status": "Running"},
                    }
                    for group in record.properties.get("InstanceGroups", [])
                    for at in range(int(group["InstanceCount"]))
                ]
            }
    raise ServiceError("ResourceNotFound", f"Cluster {request['ClusterName']} not found")


def _list_clusters(_request: Mapping[str, Any]) -> dict[str, Any]:
    found = live("AWS::SageMaker::Cluster").items()
    return {"ClusterSummaries": [_cluster_summary(arn, record) for arn, record in found]}


def _cluster_summary(arn: str, record: Record) -> dict[str, Any]:
    return {
        "ClusterArn": arn,
        "ClusterName": _cluster_name(arn, record),
        "ClusterStatus": "InService",
        "CreationTime": time.time(),
    }


def _cluster_name(arn: str, record: Record) -> str:
    return str(record.properties.get("ClusterName") or arn.rsplit("/", 1)[1])


def _list_workspaces(_request: Mapping[str, Any]) -> dict[str, Any]:
    found = live("AWS::APS::Workspace").items()
    return {"workspaces": [_workspace(arn, record) for arn, record in found]}


def _describe_workspace(request: Mapping[str, Any]) -> dict[str, Any]:
    for arn, record in live("AWS::APS::Workspace").items():
        if record.attributes["WorkspaceId"] == request["workspaceId"]:
            endpoint = record.attributes["PrometheusEndpoint"]
            return {"workspace": {**_workspace(arn, record), "prometheusEndpoint": endpoint}}
    raise ServiceError("ResourceNotFoundException", f"Workspace not found: {request['workspaceId']}", 404)


def _workspace(arn: str, record: Record) -> dict[str, Any]:
    return {
        "workspaceId": record.attributes["WorkspaceId"],
        "arn": arn,
        "alias": record.properties.get("Alias"),
        "status": {"statusCode": "ACTIVE"},
        "createdAt": time.time(),
        "tags": {},
    }


OPERATIONS: dict[str, dict[str, Operation]] = {
    "fsx": {
        "DeleteFileSystem": _delete_file_system,
        "DescribeBackups": _describe_backups,
        "DescribeFileSystems": _describe_file_systems,
        "DescribeDataRepositoryAssociations": _describe_associations,
    },
    "sagemaker": {
        "DescribeCluster": _describe_cluster,
        "ListClusterNodes": _list_cluster_nodes,
        "ListClusters": _list_clusters,
    },
    "amp": {
        "DeleteWorkspace": _delete_workspace,
        "DescribeWorkspace": _describe_workspace,
        "ListWorkspaces": _list_workspaces,
    },
}


def install() -> None:
    """Mount the services."""
    mount("fsx", _serve("fsx"), target="AWSSimbaAPIService")
    mount("sagemaker", _serve("sagemaker"), target="SageMaker.")
    mount("aps", _serve("amp"))


def _serve(service: str) -> Serve:
    model = get_service_model(service)
    protocol = model.metadata["protocol"]

    async def handle(method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]) -> Response:
        try:
            name, uri = _operation(model, method, path, headers)
        except ServiceError as error:
            text = json.dumps({"__type": error.code, "message": str(error)})
            return error.status, {"Content-Type": "application/json"}, text.encode()
        operation = model.operation_model(name)
        serializer = get_serializer_class(service, protocol)(operation)
        pairs = [(key, one) for key, value in query.items() for one in (value if isinstance(value, list) else [value])]
        request = {
            "method": method,
            "values": MultiDict([*pairs, *parse_qsl((body or b"").decode())] if protocol == "query" else pairs),
            "headers": Headers(list(headers.items())),
            "body": body or b"",
            "url_path": path,
            "url_params": uri,
        }
        try:
            parsed = PROTOCOL_PARSERS[protocol](operation).parse(request) or {}
            if name not in OPERATIONS[service]:
                raise ServiceError("UnknownOperationException", f"the local AWS has no {service}:{name}", 501)
            answer = serializer.serialize(OPERATIONS[service][name](parsed))
        except ServiceError as error:
            shown = ClientError({"Error": {"Code": error.code, "Message": str(error)}}, name)
            shown.code, shown.message = error.code, str(error)  # type: ignore[attr-defined]
            answer = serializer.serialize(shown)
            answer["status_code"] = error.status
        content = answer["body"]
        encoded = content if isinstance(content, bytes) else str(content).encode()
        return int(answer["status_code"]), dict(answer["headers"]), encoded

    return handle


def _operation(model: Any, method: str, path: str, headers: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Which operation a request is for, and what its path holds."""
    if target := headers.get("x-amz-target"):
        return target.split(".")[-1], {}
    for name in model.operation_names:
        http = model.operation_model(name).http
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(http["requestUri"].split("?")[0]))
        if http["method"] == method and (found := re.fullmatch(pattern, path)):
            return name, {key: unquote(value) for key, value in found.groupdict().items()}
    raise ServiceError("UnknownOperationException", f"{method} {path}", 404)
