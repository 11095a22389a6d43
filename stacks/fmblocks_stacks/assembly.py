"""From loaded projects to a cloud assembly."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from constructs import Construct

from fmblocks.project import PROJECT_ONLY, LoadedProject
from fmblocks.serving.settings import ServingCluster
from fmblocks_stacks.capacity import CapacityStack, created
from fmblocks_stacks.foundation import FoundationStack
from fmblocks_stacks.inference import InferenceStack
from fmblocks_stacks.training import TrainingStack


def build(app: cdk.App, projects: Sequence[LoadedProject], *, staged: bool = False) -> None:
    """Add the stacks of ``projects`` to ``app``; ``staged`` gives each project a Stage of its name."""
    for loaded in projects:
        environment = cdk.Environment(account=loaded.project.account, region=loaded.project.region)
        scope: Construct = cdk.Stage(app, loaded.project.name, env=environment) if staged else app
        _stacks(scope, loaded, environment)


def synthesize(
    projects: Sequence[LoadedProject], *, staged: bool = False, context: Mapping[str, object] | None = None
) -> None:
    """Write the cloud assembly of ``projects`` where the CDK CLI expects it."""
    # jsii's stack traces name temporary folders, which differ from run to run, and no line of the user's.
    app = cdk.App(context={**(context or {}), "aws:cdk:disable-stack-trace": True})
    build(app, projects, staged=staged)
    try:
        app.synth()
    except RuntimeError as error:
        if "ValidationFailed" not in str(error):
            raise
        # CDK has printed what is wrong, construct by construct; jsii's traceback would add nothing to it.
        sys.exit(1)


def _stacks(scope: Construct, loaded: LoadedProject, environment: cdk.Environment) -> None:
    project = loaded.project
    foundation = FoundationStack(
        scope, "FoundationStack", project=project, stack_name=f"{project.name}-FoundationStack", env=environment
    )
    stacks: list[cdk.Stack] = [foundation]
    capacity: CapacityStack | None = None
    if created(project):
        capacity = CapacityStack(
            scope,
            "CapacityStack",
            project=project,
            stack_name=f"{project.name}-CapacityStack",
            env=environment,
        )
        stacks.append(capacity)
    training: TrainingStack | None = None
    if project.training is not None:
        training = TrainingStack(
            scope,
            "TrainingStack",
            project=project,
            training=project.training,
            folder=loaded.path.parent,
            charts=loaded.charts,
            stack_name=f"{project.name}-TrainingStack",
            env=environment,
        )
        # Nothing in the template says so: the values travel through SSM.
        training.add_stack_dependency(foundation)
        if capacity is not None:
            training.add_stack_dependency(capacity)
        stacks.append(training)
    if project.inference is not None:
        inference = InferenceStack(
            scope,
            "InferenceStack",
            project=project,
            inference=project.inference,
            folder=loaded.path.parent,
            charts=loaded.charts,
            stack_name=f"{project.name}-InferenceStack",
            env=environment,
        )
        shared = project.inference.cluster is ServingCluster.TRAINING
        for other in (foundation, capacity, training if shared else None):
            if other is not None:
                inference.add_stack_dependency(other)
        stacks.append(inference)
    for stack in stacks:
        for key, value in {"fmblocks:project": project.name, **project.tags}.items():
            cdk.Tags.of(stack).add(key, value)
    for finding in loaded.findings:
        if finding.rule not in PROJECT_ONLY:
            continue  # the construct it is about says so itself
        text = f"{finding.path}: {finding.message}; {finding.hint}"
        cdk.Annotations.of(foundation).add_warning_v2(f"fmblocks:{finding.rule}", text)
