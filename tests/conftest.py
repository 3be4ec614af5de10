"""Settings of all laws: how long an example takes on a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")
