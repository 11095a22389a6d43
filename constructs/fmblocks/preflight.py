"""What only the account knows, asked before a deployment. Nothing is changed.

Each room has a ``preflight.py`` with its questions; clients are passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_eks.client import EKSClient
    from mypy_boto3_fsx.client import FSxClient
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sagemaker.client import SageMakerClient
    from mypy_boto3_service_quotas.client import ServiceQuotasClient
    from mypy_boto3_ssm.client import SSMClient


class Outcome(StrEnum):
    """What came of a question."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"  # the question was not answered


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one question, with its id, its place in the project file, and what to do."""

    rule: str
    outcome: Outcome
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.outcome} [{self.rule}] {self.path}: {self.message}{hint}"


@dataclass(frozen=True)
class Account:
    """Clients of the project's account and Region."""

    ec2: EC2Client
    eks: EKSClient
    fsx: FSxClient
    iam: IAMClient
    s3: S3Client
    sagemaker: SageMakerClient
    service_quotas: ServiceQuotasClient
    ssm: SSMClient


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what passes when nothing is yielded, and who asks."""

    rule: str
    path: str
    passes: str
    ask: Callable[[], Iterator[Result]]


def answers(questions: Iterable[Question]) -> Iterator[Result]:
    """Ask; a call that is denied or fails leaves its question unknown, and the others are asked all the same."""
    for question in questions:
        try:
            found = list(question.ask())
        except ClientError as error:
            told = error.response["Error"]
            text = f"{error.operation_name} was not answered: {told.get('Code')}: {told.get('Message')}"
            found = [Result(question.rule, Outcome.UNKNOWN, question.path, text, "ask with other credentials")]
        yield from found or [Result(question.rule, Outcome.PASS, question.path, question.passes)]
