"""A share of a suite's tests: `make test-others` runs another one for every commit."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--share", default="1/1", help="K/N: every Nth of the tests, from the Kth on; a class is one of them"
    )
    parser.addoption(
        "--share-of",
        choices=("tests", "modules"),
        default="tests",
        help="modules: the tests of a module stay together, as some need what an earlier one made",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    first, every = map(int, config.getoption("--share").split("/"))
    # What a class prepares takes longer than its tests: a class is not torn apart.
    unit_of = _module if config.getoption("--share-of") == "modules" else _unit
    units = list(dict.fromkeys(map(unit_of, items)))
    # At least one always runs; where there are fewer than shares, shares overlap.
    chosen = set(units[(first - 1) % max(len(units), 1) :: every])
    left = [item for item in items if unit_of(item) not in chosen]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if unit_of(item) in chosen]


def _unit(item):
    owner = item.getparent(pytest.Class)
    return owner.nodeid if owner else item.nodeid


def _module(item):
    return item.nodeid.partition("::")[0]
