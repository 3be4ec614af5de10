"""The script of the plotting library, which the report has inside itself: Vega, Vega-Lite and Vega-Embed."""

from __future__ import annotations

import functools

from dbt.adapters.zlayout.errors import UnsupportedError


@functools.cache
def vega_script() -> str:
    """Returns the script, about 0.9 MB, so that it cannot end an HTML script element early.

    The library takes seconds to put it together, so a process does it once.

    Raises:
        UnsupportedError: The library is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 # optional
    except ImportError as error:
        raise UnsupportedError(
            f"the report draws its plots with Vega, which is not installed ({error}); run "
            "pip install 'dbt-zlayout[report]', or ask for json"
        ) from error
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
