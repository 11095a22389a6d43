"""AWS answers at the level of HTTP, below botocore's retries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HeadersDict

Answers = list[tuple[int, bytes]]


class _Raw:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.body


@pytest.fixture
def answer_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Answers], None]:
    """Lets a client get these answers, one for each request it really sends; waiting between retries takes no time."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def answer(client: Any, answers: Answers) -> None:
        def send(request: Any, **_: Any) -> AWSResponse:
            status, body = answers.pop(0)
            return AWSResponse(request.url, status, HeadersDict(), _Raw(body))  # type: ignore[arg-type]

        client.meta.events.register("before-send", send)

    return answer
