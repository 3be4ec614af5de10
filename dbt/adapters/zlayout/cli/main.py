"""The commands of `zlayout`. Each opens a table and calls what the run-operation of its name calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbt.adapters.zlayout.cli.context import Context, command, results_on_stdout

# Modules of Spark and dbt are imported where a command runs, so that `zlayout --help` starts fast.
_TABLE = click.argument("table")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dbt-zlayout")
def zlayout() -> None:
    """Inspects and maintains tables of dbt-zlayout.

    TABLE is a folder (/lake/orders, ./orders, s3://lake/orders), schema.table, or with --manifest the name of a model.
    Results go to stdout, progress to stderr. The exit code is 1 after an error and 2 for a wrong command line.
    """


@command(zlayout)
@_TABLE
@click.option("--columns", help="The columns to measure, separated by commas, instead of the clustering keys.")
@click.option("--verbose", is_flag=True, help="Show the whole state and the layout.")
@_JSON
def info(context: Context, table: str, columns: str | None, verbose: bool, as_json: bool) -> None:
    """Say how good a table is: a verdict, what is left to do, its version and size."""
    from dbt.adapters.zlayout.adapter.operations.diagnostics import information_report

    session, name = context.open(table)
    click.echo(information_report(session, name, columns, as_json, verbose, with_dbt=False))


@command(zlayout)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--output", type=click.Path(dir_okay=False), help="The HTML file to write.")
@_JSON
def report(context: Context, tables: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """Make a report of tables as one HTML file: verdicts, pictures of layouts, and what to do.

    Without TABLE, of all tables of --manifest.
    """
    from dbt.adapters.zlayout.adapter.node_lookup import is_path
    from dbt.adapters.zlayout.adapter.operations.layout_reports import layout_report

    if not tables and context.manifest is None:
        raise click.UsageError("give tables, or --manifest for all tables of a dbt project")
    if output is None and not as_json:
        raise click.UsageError("give --output FILE for the report, or --json for its figures")
    names = [context.table(each) for each in tables]
    needs_catalog = not names or not all(map(is_path, names))
    session = context.session(names[0] if names else "", needs_catalog=needs_catalog)
    title = ", ".join(names[:3]) + (" …" if len(names) > 3 else "") if names else str(context.manifest)
    with_dbt = context.manifest is not None
    target, nodes = context.target_folder, context.every_node
    made = layout_report(session, title, names or None, nodes, output, as_json, target=target, with_dbt=with_dbt)
    click.echo(made)


@command(zlayout)
@_TABLE
@click.argument("predicate")
@click.option("--verbose", is_flag=True, help="List every file and condition.")
@_JSON
def explain(context: Context, table: str, predicate: str, verbose: bool, as_json: bool) -> None:
    """Explain which files a condition reads, such as "day = '2024-01-01'"."""
    from dbt.adapters.zlayout.adapter.operations.diagnostics import explain_report

    name = context.table(table)
    click.echo(explain_report(context.session(name), table=name, predicate=predicate, as_json=as_json, verbose=verbose))


@command(zlayout)
@_TABLE
@click.option("--where", multiple=True, help="A condition of the workload, or WEIGHT:CONDITION. Can be repeated.")
@click.option(
    "--scan-log", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder with a scan log."
)
@click.option("--min-gain", type=click.FloatRange(0, 1), help="The share of opened rows that a change must save.")
@_JSON
def advise(
    context: Context,
    table: str,
    where: tuple[str, ...],
    scan_log: Path | None,
    min_gain: float | None,
    as_json: bool,
) -> None:
    """Advise keys, partition columns and indexes for the conditions that queries have.

    Without --where, they come from the scan log and from the compiled SQL of the project of --manifest.
    """
    from dbt.adapters.zlayout.adapter.operations.advising import advise_report

    session, name = context.open(table)
    wanted = [_weighted(each) for each in where]
    click.echo(
        advise_report(
            session,
            name,
            context.every_node,
            context.target_folder,
            predicates=wanted,
            min_gain=min_gain,
            as_json=as_json,
            scans=scan_log,
        )
    )


@command(zlayout)
@_TABLE
@click.option("--limit", type=click.IntRange(min=1), help="The most versions to list.")
@_JSON
def history(context: Context, table: str, limit: int | None, as_json: bool) -> None:
    """List the versions, newest first."""
    from dbt.adapters.zlayout.adapter.operations.time_travel import history_report

    session, name = context.open(table)
    click.echo(history_report(session, name, limit, as_json))


@command(zlayout)
@_TABLE
@click.option("--strategy", help="How rows are arranged: curve, the default, binpack or sort.")
@click.option("--sort-by", help="The columns of the strategy sort, separated by commas.")
@click.option("--where", help="Only rewrite files that may hold a matching row.")
@click.option("--max-bytes", help="The most bytes to rewrite, such as 10gb.")
@click.option("--rewrite-all", is_flag=True, help="Rewrite every file, even where it does not pay off.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("--schedule", is_flag=True, help="Only write a plan, for a later call with --execute.")
@click.option("--execute", is_flag=True, help="Execute the pending plan.")
@click.option("--plan", help="The instant of the only plan to execute.")
@_JSON
def cluster(context: Context, table: str, as_json: bool, **given: Any) -> None:
    """Rewrite overlapping, small and oversized files where it pays off."""
    from dbt.adapters.zlayout.adapter.operations.maintenance import cluster_report

    session, name = context.open(table)
    wanted = {key: value for key, value in given.items() if value not in (None, False)}
    click.echo(cluster_report(session, name, context.nodes, as_json, wanted))


@command(zlayout)
@_TABLE
@click.option("--where", help="Only compact file groups that may hold a matching row.")
@click.option("--strategy", help="Which file groups come first, as in a model's config.")
@click.option("--max-bytes", help="The most bytes to compact, such as 10gb.")
@click.option("--logs-only", is_flag=True, help="Merge the logs of each file group into one, and keep its base file.")
@click.option("--schedule", is_flag=True, help="Only write a plan, for a later call with --execute.")
@click.option("--execute", is_flag=True, help="Execute the pending plans.")
@click.option("--plan", help="The instant of the only plan to execute.")
@_JSON
def compact(context: Context, table: str, as_json: bool, **given: Any) -> None:
    """Merge the logs of a merge-on-read table into its base files."""
    from dbt.adapters.zlayout.adapter.operations.maintenance import compaction_report

    session, name = context.open(table)
    wanted = {key: value for key, value in given.items() if value not in (None, False)}
    click.echo(compaction_report(session, name, context.nodes, as_json, wanted))


@command(zlayout)
@_TABLE
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--retain-versions", type=click.IntRange(min=1), help="How many of the newest versions to keep.")
@click.option(
    "--retain-hours", type=click.FloatRange(min=0), help="Keep versions that were the newest within this time."
)
@_JSON
def clean(
    context: Context,
    table: str,
    dry_run: bool,
    retain_versions: int | None,
    retain_hours: float | None,
    as_json: bool,
) -> None:
    """Delete the files that no retained version needs."""
    from dbt.adapters.zlayout.adapter.operations.time_travel import clean_report

    session, name = context.open(table)
    click.echo(
        clean_report(
            session,
            name,
            context.nodes,
            dry_run=dry_run,
            retain_versions=retain_versions,
            retain_hours=retain_hours,
            as_json=as_json,
        )
    )


@command(zlayout)
@_TABLE
@click.option(
    "--format",
    "formats",
    multiple=True,
    help="A format to publish in, such as delta. Can be repeated; others are switched off.",
)
@click.option("--catalog", "publish_catalog", help="The catalog of pyiceberg for the Iceberg table; '' for none.")
@click.option("--off", is_flag=True, help="Withdraw what was published.")
@_JSON
def publish(
    context: Context, table: str, formats: tuple[str, ...], publish_catalog: str | None, off: bool, as_json: bool
) -> None:
    """Publish a table for other engines, or what is missing there.

    Formats and catalog that no option gives are those of the model's config in --manifest, or else the table's own.
    """
    from dbt.adapters.zlayout.adapter.operations.publishing import publish_report

    if off and (formats or publish_catalog):
        raise click.UsageError("--off withdraws all formats; leave out --format and --catalog")
    session, name = context.open(table)
    config = {} if off else context.config(name)
    wanted = [] if off else list(formats) or config.get("publish")
    if publish_catalog is None and (wanted is None or "iceberg" in wanted):
        publish_catalog = config.get("publish_catalog")
    click.echo(publish_report(session, name, context.nodes, wanted, publish_catalog, as_json))


@command(zlayout)
@_TABLE
@click.option("--bloom", help="Columns or expressions, separated by commas, for Bloom filters.")
@click.option("--lookup", help="Columns or expressions, separated by commas, for lookup indexes; a+b is both together.")
@click.option("--stats-expression", multiple=True, help="An expression with statistics; may be given several times.")
@click.option("--drop", is_flag=True, help="Remove these indexes and statistics.")
@click.option("--schedule", is_flag=True, help="Only change the settings, for a later call with --execute.")
@click.option("--execute", is_flag=True, help="Only add what files lack of the table's indexes.")
@_JSON
def index(
    context: Context,
    table: str,
    bloom: str | None,
    lookup: str | None,
    stats_expression: tuple[str, ...],
    drop: bool,
    schedule: bool,
    execute: bool,
    as_json: bool,
) -> None:
    """Add Bloom filters, lookup indexes or statistics of expressions to a table's index. Its files do not change.

    Without any, only build the table's indexes for files that lack them.
    """
    from dbt.adapters.zlayout.adapter.operations.indexes import index_report

    if drop and not (bloom or lookup or stats_expression):
        raise click.UsageError("--drop needs --bloom or --lookup with the columns, or --stats-expression")
    name, nodes = context.table(table), context.nodes
    session = context.session(name)
    click.echo(
        index_report(
            session,
            name,
            nodes,
            bloom=bloom,
            lookup=lookup,
            stats_expressions=stats_expression,
            drop=drop,
            schedule=schedule,
            execute=execute,
            as_json=as_json,
        )
    )


@command(zlayout)
@_TABLE
@click.option("--manage", is_flag=True, help="Make the table managed: from then on, only this package may write to it.")
@_JSON
def adopt(context: Context, table: str, manage: bool, as_json: bool) -> None:
    """Index a Parquet table of another tool, or with --manage take it over. No file is rewritten.

    Clustering keys, columns with statistics and the like are those of the model's config in --manifest.
    """
    from dbt.adapters.zlayout.adapter.operations.indexes import adopt_report

    session, name = context.open(table)
    click.echo(adopt_report(session, name, context.config(name), manage, as_json))


@command(zlayout)
@_TABLE
@click.option("--take-orphans", is_flag=True, help="Append the Parquet files that other tools put into the folder.")
@click.option("--drop-missing", is_flag=True, help="Commit a version without lost files. Their rows are lost.")
@_JSON
def refresh(context: Context, table: str, take_orphans: bool, drop_missing: bool, as_json: bool) -> None:
    """Bring the index of a table up to date with its files. A Parquet table without an index gets one."""
    from dbt.adapters.zlayout.adapter.operations.indexes import refresh_report

    session, name = context.open(table)
    click.echo(
        refresh_report(
            session,
            name,
            context.nodes,
            {},
            take_orphans=take_orphans,
            drop_missing=drop_missing,
            as_json=as_json,
        )
    )


@command(zlayout)
@_TABLE
@click.option("--data", is_flag=True, help="Read all columns with statistics, not only the footers.")
@_JSON
def verify(context: Context, table: str, data: bool, as_json: bool) -> None:
    """Compare the index with the files. The exit code is 1 if a cell is wrong."""
    from dbt.adapters.zlayout.adapter.operations.indexes import verified, verify_text

    name = context.table(table)
    wrong = verified(context.session(name), name, data)
    click.echo(verify_text(wrong, as_json=as_json))
    if any(wrong.values()):
        raise click.exceptions.Exit(1)


@command(zlayout)
@_TABLE
@click.option("--version", type=click.IntRange(min=0), help="An older version.")
@click.option("--format", "kind", type=click.Choice(["text", "json", "parquet"]), default="text", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file, instead of stdout.")
def files(context: Context, table: str, version: int | None, kind: str, output: Path | None) -> None:
    """List the files that hold the rows of a version, for any tool."""
    from dbt.adapters.zlayout.adapter.operations.publishing import files_bytes

    if kind == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    session, name = context.open(table)
    content = files_bytes(session, name, version, kind)
    if output is None:
        click.echo(content, nl=False)
    else:
        output.write_bytes(content)


@command(zlayout)
@click.argument("name")
@click.argument("path")
@_JSON
def register(context: Context, name: str, path: str, as_json: bool) -> None:
    """Make the catalog entry NAME of the table in the folder PATH."""
    from dbt.adapters.zlayout.adapter.operations.publishing import register_report

    table = context.table(name)
    click.echo(register_report(context.session(path, needs_catalog=True), table, path, as_json))


@command(zlayout)
@click.argument("table", required=False)
@click.option("--sarif", is_flag=True, help="Print SARIF, for code hosts.")
@click.option("--exit-zero", is_flag=True, help="Exit with code 0 even if something is found.")
@_JSON
def lint(context: Context, table: str | None, sarif: bool, exit_zero: bool, as_json: bool) -> None:
    """Find conditions in compiled models and tests that cannot skip files. The exit code is 1 if there is one.

    Needs --manifest. Without TABLE, all tables of the project count.
    """
    from dbt.adapters.zlayout.adapter.operations.linting import lint_project, lint_text

    if sarif and as_json:
        raise click.UsageError("--json and --sarif are two formats: give one of them")
    name = context.table(table) if table else None
    session = context.project_session()
    linted = lint_project(session, name, context.every_node, context.target_folder)
    click.echo(lint_text(linted, "sarif" if sarif else "json" if as_json else "text"))
    if linted.findings and not exit_zero:
        raise click.exceptions.Exit(1)


@command(zlayout)
@click.argument("table", required=False)
@click.option("--check", is_flag=True, help="Compare with the file instead of writing it; the exit code is 1 if worse.")
@click.option(
    "--file", "path", type=click.Path(dir_okay=False, path_type=Path), default="layout.lock.json", show_default=True
)
@click.option("--tolerance", type=click.FloatRange(min=0), help="The share by which a condition may read more.")
@_JSON
def lock(context: Context, table: str | None, check: bool, path: Path, tolerance: float | None, as_json: bool) -> None:
    """Write what important conditions read into a file for git, or check that none reads more.

    Needs --manifest. Without TABLE, all tables of the project count.
    """
    from dbt.adapters.zlayout.adapter.operations.locking import lock_report

    name = context.table(table) if table else None
    session = context.project_session()
    text, passes = lock_report(
        session,
        name,
        context.every_node,
        context.target_folder,
        path,
        check=check,
        tolerance=tolerance,
        as_json=as_json,
    )
    click.echo(text)
    if not passes:
        raise click.exceptions.Exit(1)


def _weighted(text: str) -> str | tuple[str, float]:
    weight, colon, condition = text.partition(":")
    try:
        return (condition.strip(), float(weight)) if colon else text
    except ValueError:
        return text


def main() -> None:
    """The entry point of the installed command."""
    with results_on_stdout():
        zlayout(prog_name="zlayout")
