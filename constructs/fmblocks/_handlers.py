"""How the code in ``lambda/`` becomes functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import custom_resources as cr
from constructs import Construct

import fmblocks_lambda

# The asset is the folder around the package, so that tests, type checker and Lambda use one import name. Everything
# else in that folder stays out (in a wheel it is site-packages), and byte code too: it would change the asset's hash.
_ROOT = str(Path(fmblocks_lambda.__file__).parent.parent)
_ONLY_THE_PACKAGE = ["/*", "!/fmblocks_lambda", "__pycache__", "py.typed"]


def handler_function(
    scope: Construct,
    id: str,
    *,
    module: str,
    description: str,
    function: str = "on_event",
    timeout: cdk.Duration | None = None,
    memory_size_mib: int = 128,
    environment: Mapping[str, str] | None = None,
) -> lambda_.Function:
    """The function whose handler is ``fmblocks_lambda.<module>.<function>``; its log group goes with the stack."""
    return lambda_.Function(
        scope,
        id,
        code=lambda_.Code.from_asset(_ROOT, ignore_mode=cdk.IgnoreMode.GIT, exclude=_ONLY_THE_PACKAGE),
        handler=f"fmblocks_lambda.{module}.{function}",
        runtime=lambda_.Runtime.PYTHON_3_14,
        description=description,
        timeout=timeout or cdk.Duration.minutes(1),
        memory_size=memory_size_mib,
        environment=environment,
        log_group=_log_group(scope, f"{id}Logs"),
    )


def custom_resource(
    scope: Construct,
    id: str,
    *,
    handler: lambda_.IFunction,
    resource_type: str,
    properties: Mapping[str, object],
    waiter: lambda_.IFunction | None = None,
) -> cdk.CustomResource:
    """A custom resource behind CDK's own provider, which answers CloudFormation whatever the handler does.

    ``waiter`` is asked every minute whether it is done, for as long as CloudFormation waits: an hour.
    """
    provider = cr.Provider(
        scope,
        f"{id}Provider",
        on_event_handler=handler,
        log_group=_log_group(scope, f"{id}ProviderLogs"),
        is_complete_handler=waiter,
        query_interval=cdk.Duration.minutes(1) if waiter else None,
        # Less than the hour, so that the answer says what was waited for.
        total_timeout=cdk.Duration.minutes(55) if waiter else None,
        disable_waiter_state_machine_logging=True if waiter else None,
    )
    resource = cdk.CustomResource(
        scope, id, service_token=provider.service_token, resource_type=resource_type, properties=properties
    )
    # The policy of the function: without it the first request is denied.
    resource.node.add_dependency(handler)
    return resource


def _log_group(scope: Construct, id: str) -> logs.LogGroup:
    return logs.LogGroup(scope, id, retention=logs.RetentionDays.ONE_MONTH, removal_policy=cdk.RemovalPolicy.DESTROY)
