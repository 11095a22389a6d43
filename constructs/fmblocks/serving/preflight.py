"""What only the account knows about what is served."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from botocore.exceptions import ClientError

from fmblocks.preflight import Account, Outcome, Question, Result
from fmblocks.serving.model_manifest import NAME
from fmblocks.serving.settings import Endpoint


def questions(endpoints: Sequence[Endpoint], *, foundation: str, account: Account) -> Iterator[Question]:
    """The questions about a project's endpoints.

    Args:
        endpoints: of the project.
        foundation: whose parameters name the model store.
        account: clients.
    """
    for index, endpoint in enumerate(endpoints):
        if (stored := endpoint.model.store) is not None:
            where = f"inference.endpoints[{index}].model.store"
            ask = functools.partial(_stored, stored, where, foundation, account)
            yield Question("FMB-143", where, f"{stored} is in the model store, whole", ask)


def _stored(stored: str, where: str, foundation: str, account: Account) -> Iterator[Result]:
    push = f"fmblocks model push FILE FOLDER {stored}"
    name = f"/fmblocks/{foundation}/bucket/models/name"
    found = account.ssm.get_parameters(Names=[name])["Parameters"]
    if not found:
        text = f"{stored} is nowhere yet: the model store is not deployed"
        yield Result("FMB-143", Outcome.WARN, where, text, f"deploy FoundationStack first, then: {push}")
        return
    bucket = found[0]["Value"]
    try:
        account.s3.head_object(Bucket=bucket, Key=f"{stored}/{NAME}")
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
            raise
        text = f"s3://{bucket}/{stored}/ has no {NAME}: its replicas would not start"
        yield Result("FMB-143", Outcome.FAIL, where, text, push)
