"""A stand-in for the AWS CLI: calls the operation that a command names, with botocore's model of it, through boto3.

The AWS CLI itself wants a botocore of its own beside ours.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import boto3
import jmespath
from botocore import xform_name


def main(service: str, operation: str, *words: str) -> None:
    """Run one command."""
    client: Any = boto3.client(service)  # type: ignore[call-overload]
    if operation == "wait":
        waiter, option, value = words
        client.get_waiter(waiter.replace("-", "_")).wait(**{option[2:].title().replace("-", ""): value})
        return
    method = operation.replace("-", "_")
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            options[word[2:]] = last = []
        else:
            last.append(word)
    query, output = options.pop("query", [None])[0], options.pop("output", ["json"])[0]
    given = {}
    for option, values in options.items():
        if option.startswith("no-") and option not in members:
            given[members[option[3:]][0]] = False
            continue
        name, member = members[option]
        given[name] = _typed(member, values)
    pages = (
        client.get_paginator(method).paginate(**given)
        if client.can_paginate(method)
        else [getattr(client, method)(**given)]
    )
    for page in pages:
        found = jmespath.search(query, page) if query else page
        if output == "text":
            print("\t".join(map(str, found)) if isinstance(found, list) else found)
        else:
            print(json.dumps(found, default=str))


def _typed(shape: Any, values: list[str]) -> Any:
    match shape.type_name:
        case "list":
            return [_typed(shape.member, [value]) for value in values]
        case "structure":
            found = re.findall(r"(\w+)=([^,]*)", values[0])
            return {key: _typed(shape.members[key], [value]) for key, value in found}
        case "integer" | "long":
            return int(values[0])
        case "boolean":
            return True
        case _:
            return values[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
