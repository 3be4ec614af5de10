"""What all commands of `zlayout` share: their options, the session, the lines on stderr, and errors in one line."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dbt.adapters.zlayout.lazy import cached_property

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.cli.manifest import Manifest

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_CATALOG = "spark.sql.catalogImplementation"


@dataclass
class Context:
    """One call of the command line.

    Attributes:
        conf: Spark configuration of the command line.
        manifest: The manifest of a dbt project, or None.
        profile: Options that choose a dbt profile, by their names. Those that are not given are missing.
        scratch: What the command leaves behind in temporary folders, to be removed at its end.
    """

    conf: Mapping[str, str]
    manifest: Path | None
    profile: Mapping[str, Any]
    scratch: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The models of the manifest; none without a manifest."""
        return {} if self._content is None else self._content.tables()

    @cached_property
    def every_node(self) -> dict[str, dict[str, Any]]:
        """All nodes of the manifest, tests, analyses and exposures too; none without a manifest."""
        return {} if self._content is None else {**self._content.named(), **self.nodes}

    @cached_property
    def _content(self) -> Manifest | None:
        from dbt.adapters.zlayout.cli.manifest import Manifest

        return None if self.manifest is None else Manifest.read(self.manifest)

    @property
    def target_folder(self) -> Path | None:
        """The target folder of the project of the manifest."""
        return None if self.manifest is None else self.manifest.resolve().parent

    def table(self, text: str) -> str:
        """Returns the table that a user names: a folder, ``schema.table``, or a model of the manifest.

        Raises:
            ConfigError: No model has the name.
            UsageError: It can only be the name of a model, and no manifest is given.
        """
        from dbt.adapters.zlayout.adapter.node_lookup import is_path, table_of

        if self.manifest is None and "." not in text and not is_path(text):
            raise click.UsageError(
                f"TABLE {text!r} is neither a folder nor schema.table; write ./{text} for a folder, or give --manifest "
                "for the name of a model"
            )
        return table_of(text, self.nodes)

    def open(self, table: str) -> tuple[SparkSession, str]:
        """Returns the session for a command on one table, and the table that the user names."""
        name = self.table(table)
        return self.session(name), name

    def config(self, table: str) -> Mapping[str, Any]:
        """Returns the config of the model that builds a table, empty without one."""
        from dbt.adapters.zlayout.adapter.node_lookup import config_of_table

        return config_of_table(table, self.nodes)

    def project_session(self) -> SparkSession:
        """Returns the session for a command on a whole project.

        Raises:
            UsageError: No manifest is given.
        """
        if self.manifest is None:
            raise click.UsageError("give --manifest, the target/manifest.json of a dbt project")
        return self.session("")

    def session(self, table: str, *, needs_catalog: bool = False) -> SparkSession:
        """Returns the session in which a command runs.

        A command on a folder needs no metastore, so none is opened unless the configuration asks for one.
        """
        from dbt.adapters.zlayout.adapter.node_lookup import is_path
        from dbt.adapters.zlayout.adapter.session.launch import session_for
        from dbt.adapters.zlayout.adapter.session.standalone import profile_parameters

        parameters = {"spark.ui.enabled": "false"}
        if self.profile:
            parameters |= profile_parameters(**self.profile)
        elif is_path(table) and not needs_catalog and _CATALOG not in self.conf:
            # Spark makes the folder of the warehouse even if nothing is put there.
            warehouse = self.scratch.enter_context(tempfile.TemporaryDirectory(prefix="zlayout-"))
            parameters |= {_CATALOG: "in-memory", "spark.sql.warehouse.dir": warehouse}
        return session_for({**parameters, **self.conf})


def command(group: click.Group) -> Callable[[_Command], click.Command]:
    """Turns a function into a command of the group, with the shared options and one-line errors."""

    def decorate(function: _Command) -> click.Command:
        @functools.wraps(function)
        def run(
            conf: tuple[str, ...],
            manifest: Path | None,
            profiles_dir: Path | None,
            project_dir: Path | None,
            profile: str | None,
            target: str | None,
            **options: Any,
        ) -> None:
            chosen = {"profiles_dir": profiles_dir, "project_dir": project_dir, "profile": profile, "target": target}
            given = {name: value for name, value in chosen.items() if value is not None}
            context = Context(dict(map(_pair, conf)), manifest, given)
            with _one_line_errors(), _progress_on_stderr(), context.scratch:
                function(context, **options)

        decorated: Any = run
        for option in reversed(_SHARED):
            decorated = option(decorated)
        return group.command(name=function.__name__)(decorated)

    return decorate


_SHARED = (
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark. Can be repeated."),
    click.option(
        "--manifest",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="target/manifest.json of a dbt project: TABLE can be a model, and its settings apply.",
    ),
    click.option("--profiles-dir", type=_FOLDER, help="The folder of profiles.yml, whose Spark settings apply."),
    click.option("--project-dir", type=_FOLDER, help="A dbt project, whose profile's Spark settings apply."),
    click.option("--profile", help="The profile, instead of the project's."),
    click.option("--target", help="The target, instead of the profile's."),
)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"--conf {text!r} is not KEY=VALUE, such as spark.master=local[2]")
    return key.strip(), value


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        # Whoever read the results has stopped, as `head` does. Click ends the command without a word.
        raise
    except Exception as error:
        from dbt.adapters.zlayout.adapter.dbt_errors import one_line

        raise click.ClickException(one_line(error)) from None


@contextmanager
def _progress_on_stderr() -> Iterator[None]:
    from dbt.adapters.zlayout.adapter.session.standalone import progress_to

    with progress_to(lambda line: click.echo(line, err=True)):
        yield


@contextmanager
def results_on_stdout() -> Iterator[None]:
    """Keeps the process's stdout for results: what Spark's JVM and other libraries print there goes to stderr."""
    import sys

    if sys.stdout is None:  # the caller has closed it
        yield
        return
    sys.stdout.flush()
    usual = sys.stdout
    sys.stdout = results = os.fdopen(os.dup(1), "w", encoding=usual.encoding, errors=usual.errors)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout = usual
        # Each result was flushed when it was printed, so any such error has already been reported.
        with suppress(OSError):
            results.close()
