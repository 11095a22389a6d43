"""Every private name of ministack that we hang on, in one place.

They are not an interface: the version is pinned exactly, and tests/local/test_contract.py breaks when one changes.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.etree import ElementTree

from ministack import app
from ministack.core import router
from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudformation, ec2, eks, iam, s3, ssm
from ministack.services.cloudformation import provisioners

Properties: TypeAlias = dict[str, Any]
Attributes: TypeAlias = dict[str, Any]
Created: TypeAlias = tuple[str, Attributes]
Response: TypeAlias = tuple[int, dict[str, str], bytes]
Describe: TypeAlias = Callable[[Mapping[str, Any]], Response]
Serve: TypeAlias = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Awaitable[Response]]


@dataclass(frozen=True)
class Handler:
    """What CloudFormation does with one resource type.

    ``create`` takes the properties and gives the physical id (what Ref returns) and what GetAtt can ask for; ``delete``
    takes the id and the properties; ``update`` takes id, old and new properties, and is only called when no create-only
    property has changed. Each may raise ValueError with the reason that the stack event shows.
    """

    create: Callable[[Properties], Created]
    delete: Callable[[str, Properties], None]
    update: Callable[[str, Properties, Properties], Created] | None = None
    create_only: tuple[str, ...] = ()


def register(resource_type: str, handler: Handler) -> None:
    """Add a resource type."""
    entry: dict[str, Any] = {
        "create": lambda _logical_id, properties, _stack: handler.create(properties),
        "delete": handler.delete,
    }
    if (update := handler.update) is not None:
        entry["update"] = lambda id, old, new, _stack: update(id, old, new)
    provisioners._RESOURCE_HANDLERS[resource_type] = entry
    provisioners._REPLACING_PROPERTIES[resource_type] = handler.create_only


def before_delete(resource_type: str, check: Callable[[str], None]) -> None:
    """Let ``check`` refuse the deletion of a built-in type by raising ValueError."""
    entry = provisioners._RESOURCE_HANDLERS[resource_type]
    delete = entry["delete"]

    def checked(id: str, *rest: Any) -> None:
        check(id)
        delete(id, *rest)

    entry["delete"] = checked


def after_create(resource_type: str, action: Callable[[Properties, Attributes], None]) -> None:
    """Run ``action`` with the properties and attributes of every created resource of a built-in type."""
    entry = provisioners._RESOURCE_HANDLERS[resource_type]
    create = entry["create"]

    def acted(logical_id: str, properties: Properties, *rest: Any) -> Created:
        id, attributes = create(logical_id, properties, *rest)
        action(properties, attributes)
        return id, attributes

    entry["create"] = acted


def checked(
    resource_type: str,
    *,
    create: Callable[[Properties], None],
    update: Callable[[str, Properties], None],
    created: Callable[[str, Properties, Attributes], None] | None = None,
    deleted: Callable[[str], None] | None = None,
) -> None:
    """Look at what a built-in type is given, before it is done, and add to what was done.

    Args:
        resource_type: one of ministack's own.
        create: may refuse the properties by raising ValueError.
        update: the same, with the id.
        created: gets id, properties and attributes, which it may change.
        deleted: gets the id of what has gone.
    """
    entry = provisioners._RESOURCE_HANDLERS[resource_type]
    old_create, old_update, old_delete = entry["create"], entry["update"], entry["delete"]

    def new_create(logical_id: str, properties: Properties, *rest: Any) -> Created:
        create(properties)
        id, attributes = old_create(logical_id, properties, *rest)
        if created is not None:
            created(id, properties, attributes)
        return id, attributes

    def new_update(id: str, old: Properties, new: Properties, *rest: Any, **named: Any) -> Created:
        update(id, new)
        updated: Created = old_update(id, old, new, *rest, **named)
        return updated

    def new_delete(id: str, *rest: Any) -> None:
        old_delete(id, *rest)
        if deleted is not None:
            deleted(id)

    entry.update(create=new_create, update=new_update, delete=new_delete)


def without_containers() -> None:
    """ministack would start a Kubernetes of its own where it finds Docker; here no handler starts anything."""
    eks._get_docker = lambda: None


def eks_cluster(name: str) -> dict[str, Any] | None:
    """The record of a cluster, as ``aws eks describe-cluster`` shows it."""
    found: dict[str, Any] | None = eks._clusters.get(name)
    return found


def eks_networks() -> list[tuple[str, list[str]]]:
    """Clusters and node groups, each with the subnets and security groups that it stands in."""
    found = []
    for name, cluster in eks._clusters.items():
        network = cluster["resourcesVpcConfig"]
        groups = [*network.get("securityGroupIds", []), network.get("clusterSecurityGroupId", "")]
        found.append((name, [*network.get("subnetIds", []), *groups]))
    found += [(name, list(group.get("subnets", []))) for name, group in eks._nodegroups.items()]
    return found


def call_eks(operation: str, *arguments: Any) -> dict[str, Any]:
    """Call an operation of EKS inside the server, by the name of its function.

    Raises:
        ValueError: with EKS's message.
    """
    status, _headers, body = getattr(eks, operation)(*arguments)
    answer: dict[str, Any] = json.loads(body)
    if status >= 400:
        raise ValueError(answer.get("message") or f"{operation} failed with {status}")
    return answer


def stored(url: str) -> bytes:
    """What lies under an address ``s3://bucket/key``.

    Raises:
        ValueError: nothing does.
    """
    bucket, _, key = url.removeprefix("s3://").partition("/")
    found: bytes | None = s3._get_object_data(bucket, key)
    if found is None:
        raise ValueError(f"{url} is not there")
    return found


def call_iam(operation: str, parameters: dict[str, str]) -> ElementTree.Element:
    """Call an operation of IAM inside the server, by the name of its function.

    Raises:
        ValueError: with IAM's message.
    """
    status, _headers, body = getattr(iam, operation)({name: [value] for name, value in parameters.items()})
    root = ElementTree.fromstring(re.sub(rb'xmlns="[^"]*"', b"", body))
    if status >= 400:
        raise ValueError(root.findtext(".//Message") or f"{operation} failed with {status}")
    return root


def supported_types() -> set[str]:
    """Every resource type that a template may hold."""
    return set(provisioners._RESOURCE_HANDLERS)


def call_ec2(action: str, **parameters: str | None) -> ElementTree.Element:
    """Call an EC2 operation inside the server. Handlers run on its event loop: a call over HTTP would wait for itself.

    Raises:
        ValueError: with EC2's message.
    """
    ec2._ensure_defaults_initialized()
    query = {name.replace("__", "."): [value] for name, value in parameters.items() if value is not None}
    status, _headers, body = ec2._ACTION_MAP[action](query)
    root = ElementTree.fromstring(re.sub(rb'xmlns="[^"]*"', b"", body))
    if status >= 400:
        raise ValueError(root.findtext(".//Message") or f"{action} failed with {status}")
    return root


def override_ec2(action: str, check: Callable[[Mapping[str, Any]], str | None]) -> None:
    """Let ``check`` refuse an EC2 operation by giving back the message of a DependencyViolation."""
    operation = ec2._ACTION_MAP[action]

    def checked(parameters: Mapping[str, Any]) -> Response:
        if message := check(parameters):
            refused: Response = ec2._error("DependencyViolation", message, 400)
            return refused
        answered: Response = operation(parameters)
        return answered

    ec2._ACTION_MAP[action] = checked


def allow_members_in_default_group(attributes: Attributes) -> None:
    """EC2 makes a default group that lets its members in; ministack leaves that rule out."""
    group = attributes["DefaultSecurityGroup"]
    ec2._security_groups[group]["IpPermissions"].append(
        {
            "IpProtocol": "-1",
            "IpRanges": [],
            "Ipv6Ranges": [],
            "PrefixListIds": [],
            "UserIdGroupPairs": [{"GroupId": group, "UserId": get_account_id()}],
        }
    )


def replaced_by_schema(create_only: Callable[[str], tuple[set[str], set[str]]]) -> None:
    """Let the built-in types be replaced as their schemas say; ministack says "Conditionally" of what it does not know.

    Args:
        create_only: gives the properties of a type whose change replaces always, and those where it may.
    """
    for resource_type in provisioners._RESOURCE_HANDLERS:
        if resource_type not in provisioners._REPLACING_PROPERTIES:
            always, sometimes = create_only(resource_type)
            provisioners._REPLACING_PROPERTIES[resource_type] = tuple(sorted(always))
            provisioners._CONDITIONALLY_REPLACING_PROPERTIES[resource_type] = tuple(sorted(sometimes))


def show_resolved_values() -> None:
    """CloudFormation shows the name of an SSM parameter and, beside it, the value it was resolved to.

    ministack shows the value in place of the name.
    """
    handlers = cloudformation._ACTION_HANDLERS
    for action, name_of, find in (
        ("DescribeStacks", "StackId", _stack),
        ("DescribeChangeSet", "ChangeSetId", lambda id: cloudformation._change_sets.get(id, {})),
    ):
        handlers[action] = _showing(handlers[action], name_of, find)


def _stack(id: str) -> Mapping[str, Any]:
    return next((one for one in cloudformation._stacks.values() if one["StackId"] == id), {})


def _showing(describe: Describe, name_of: str, find: Callable[[str], Mapping[str, Any]]) -> Describe:
    def described(parameters: Mapping[str, Any]) -> Response:
        status, headers, body = describe(parameters)
        if status >= 400:
            return status, headers, body
        space = re.search(rb'xmlns="([^"]*)"', body)
        root = ElementTree.fromstring(re.sub(rb'xmlns="[^"]*"', b"", body))
        for record in list(root.iter("member")) + list(root.iter("DescribeChangeSetResult")):
            resolved = find(record.findtext(name_of) or "").get("_resolved_params", {})
            for one in record.findall("Parameters/member"):
                known = resolved.get(one.findtext("ParameterKey") or "", {})
                value = one.find("ParameterValue")
                if "SsmName" in known and value is not None:
                    value.text = known["SsmName"]
                    ElementTree.SubElement(one, "ResolvedValue").text = known["Value"]
        if space:
            root.set("xmlns", space[1].decode())
        return status, headers, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)

    return described


def write_access_log(bucket: str, prefix: str) -> None:
    """Put an access log into a bucket, as S3 does soon after it was told to."""
    found = s3._buckets.get(bucket)
    if found is not None:
        found["objects"][f"{prefix}{unique(16)}"] = s3._build_object_record(b"an access log", {})


def bucket_is_empty(name: str) -> bool:
    """Whether a bucket holds no object."""
    return not s3._buckets.get(name, {}).get("objects")


def publish_image(parameter: str) -> None:
    """Give a public parameter the id of an image, always the same one."""
    ssm._PUBLIC_AMI_PARAMETERS[parameter] = f"ami-{hashlib.sha256(parameter.encode()).hexdigest()[:17]}"


def mount(scope: str, handler: Serve, *, target: str | None = None) -> None:
    """Serve a service under its SigV4 scope; ``target`` is how its X-Amz-Target headers begin."""
    router.SERVICE_PATTERNS[scope] = {
        "host_patterns": [rf"^{scope}\."],
        **({"target_prefixes": [target]} if target else {}),
    }
    app.SERVICE_HANDLERS[scope] = handler


def serve() -> None:
    """Run the server until it is told to stop."""
    app.main()


def environment() -> tuple[str, str]:
    """Account and Region of the request that is being served."""
    return get_account_id(), get_region()


def unique(length: int = 17) -> str:
    """Hexadecimal digits for a new id."""
    return secrets.token_hex(length)[:length]
