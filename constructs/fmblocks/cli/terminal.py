"""What a person at a terminal sees; a pipe gets the same text, plain, one line each.

rich is imported on a terminal only: it takes longer to load than a project file takes to check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import typer

from fmblocks.findings import Finding, Severity


def tell(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty():
        for finding in findings:
            typer.echo(finding, err=err)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    for finding in findings:
        colour = "bold red" if finding.severity is Severity.ERROR else "bold yellow"
        line = Text(str(finding))
        line.highlight_words([f"{finding.severity} [{finding.rule}]"], colour)
        if finding.file:
            line.highlight_regex(rf"^\S+?:(\d+: )?(?={finding.severity} )", "dim")
        if finding.hint:
            line.highlight_words([finding.hint], "green")
        console.print(line)


def tabulate(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table; ``numbers`` are the columns that stand to the right."""
    if not sys.stdout.isatty():
        widths = [max(len(row[at]) for row in [columns, *rows]) for at in range(len(columns))]
        for row in [columns, *rows]:
            cells = [
                cell.rjust(width) if at in numbers else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            typer.echo("  ".join(cells).rstrip())
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at in numbers else "left", no_wrap=at == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
