"""Use of the adapter outside of a dbt run: the Spark configuration of a profile, and the adapter's lines."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dbt.config.profile import Profile
from dbt.config.renderer import ProfileRenderer
from dbt.config.runtime import load_profile
from dbt.flags import set_from_args
from dbt_common.events.base_types import EventLevel, EventMsg
from dbt_common.events.event_manager_client import get_event_manager

from dbt.adapters.zlayout.adapter.session.credentials import ZlayoutCredentials
from dbt.adapters.zlayout.errors import ConfigError

_SHOWN = {EventLevel.INFO.value, EventLevel.WARN.value, EventLevel.ERROR.value}
_PROFILES, _PROJECT = "profiles.yml", "dbt_project.yml"


def profile_parameters(
    project_dir: Path | None = None,
    profiles_dir: Path | None = None,
    profile: str | None = None,
    target: str | None = None,
) -> dict[str, str]:
    """Returns the ``server_side_parameters`` of a target, as ``dbt run`` would read them.

    Args:
        project_dir: The project that names the profile. The default is the working directory.
        profiles_dir: The folder of profiles.yml. The default is as in dbt: DBT_PROFILES_DIR, the project, ~/.dbt.
        profile: The profile, instead of the project's.
        target: The target, instead of the profile's.

    Raises:
        ConfigError: No profile is chosen, or it is not of this adapter.
        DbtRuntimeError: dbt cannot read the profile. The message says why.
    """
    project = project_dir or Path.cwd()
    set_from_args(Namespace(PROFILES_DIR=str(profiles_dir or _default_profiles_dir(project))), None)
    if (project / _PROJECT).is_file():
        chosen = load_profile(str(project), {}, profile, target)
    elif profile is not None:
        chosen = Profile.render(ProfileRenderer({}), None, profile, target)
    else:
        raise ConfigError([f"there is no {_PROJECT} in {project}, so no profile is chosen; give --profile too"])
    credentials = chosen.credentials
    if not isinstance(credentials, ZlayoutCredentials):
        found = f"profile {chosen.profile_name!r}, target {chosen.target_name!r}"
        raise ConfigError([f"{found} has the type {credentials.type!r}; choose a target with type: zlayout"])
    return dict(credentials.server_side_parameters)


def _default_profiles_dir(project: Path) -> Path:
    if named := os.environ.get("DBT_PROFILES_DIR"):
        return Path(named)
    return project if (project / _PROFILES).is_file() else Path.home() / ".dbt"


@contextmanager
def progress_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Within the context, each line that a run would print on the terminal is handed to a function instead."""

    def show(message: EventMsg) -> None:
        if message.info.level in _SHOWN:
            tell(str(getattr(message.info, "msg", "")).removeprefix("Zlayout adapter: "))

    manager = get_event_manager()
    # Without a run's own loggers, dbt prints every line on stdout.
    before = list(manager.loggers)
    manager.loggers.clear()
    manager.callbacks.append(show)
    try:
        yield
    finally:
        manager.callbacks.remove(show)
        manager.loggers[:] = before
