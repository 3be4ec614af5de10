"""Functions of a column that predicates may use, each with Spark's semantics."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import Function
from dbt.adapters.zlayout.predicate.literals import literal, type_name

Number = int | float | Decimal


class Rounding(Enum):
    """The rounding mode; the enum value is Spark's function."""

    FLOOR = "floor"
    CEILING = "ceil"
    HALF_UP = "round"
    HALF_EVEN = "bround"


class TimeUnit(Enum):
    """The unit to which a date or time is truncated; the enum value is Spark's word."""

    YEAR = "YEAR"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    WEEK = "WEEK"
    DAY = "DAY"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"
    MILLISECOND = "MILLISECOND"
    MICROSECOND = "MICROSECOND"


class CalendarPart(Enum):
    """A field of a date or local time; the enum value is Spark's function."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY_OF_YEAR = "dayofyear"
    DAY_OF_MONTH = "day"
    DAY_OF_WEEK = "dayofweek"
    WEEKDAY = "weekday"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"


@dataclass(frozen=True)
class Convert(Function):
    """The value in another type, as CAST converts it where no time zone is involved."""

    def sql(self, argument: str) -> str:
        """Returns ``CAST(x AS type)``."""
        return f"CAST({argument} AS {type_name(self.type).upper()})"


@dataclass(frozen=True)
class Plus(Function):
    """``x + amount``; days on a date, microseconds on a timestamp."""

    amount: Number

    def sql(self, argument: str) -> str:
        """Returns ``(x + amount)``, or ``date_add(x, amount)``."""
        if pa.types.is_date32(self.type):
            return f"date_add({argument}, {self.amount})"
        if pa.types.is_timestamp(self.type):
            return f"({argument} + INTERVAL '{Decimal(self.amount) / 1_000_000:f}' SECOND)"
        return (
            f"({argument} + {self.amount})"
            if not str(self.amount).startswith("-")
            else f"({argument} - {-self.amount})"
        )


@dataclass(frozen=True)
class Times(Function):
    """``x * factor``; the factor is finite and not 0."""

    TEMPLATE = "({x} * {f.factor})"
    factor: Number


@dataclass(frozen=True)
class Over(Function):
    """``x / divisor`` on floating-point numbers, ``x div divisor`` on integers; the divisor is finite and not 0."""

    divisor: Number

    def sql(self, argument: str) -> str:
        """Returns ``(x / divisor)`` or ``(x div divisor)``."""
        return f"({argument} {'div' if pa.types.is_integer(self.type) else '/'} {self.divisor})"


@dataclass(frozen=True)
class Remainder(Function):
    """``x % divisor`` on integers, with the sign of x; ``pmod`` if never_negative. The divisor is above 0."""

    divisor: int
    never_negative: bool

    def sql(self, argument: str) -> str:
        """Returns ``(x % divisor)`` or ``pmod(x, divisor)``."""
        return f"pmod({argument}, {self.divisor})" if self.never_negative else f"({argument} % {self.divisor})"


@dataclass(frozen=True)
class Negate(Function):
    """``-x``."""

    TEMPLATE = "-{x}"


@dataclass(frozen=True)
class Absolute(Function):
    """``abs(x)``."""

    TEMPLATE = "abs({x})"


@dataclass(frozen=True)
class Rounded(Function):
    """x rounded to a number of decimal digits; a negative number rounds to tens, hundreds and so on."""

    rounding: Rounding
    digits: int

    def sql(self, argument: str) -> str:
        """Returns ``round(x, digits)`` or the function of another mode."""
        return (
            f"{self.rounding.value}({argument}, {self.digits})" if self.digits else f"{self.rounding.value}({argument})"
        )


@dataclass(frozen=True)
class LocalTime(Function):
    """The wall-clock time of an instant: TIMESTAMP to TIMESTAMP_NTZ."""

    TEMPLATE = "{x}"  # SQL takes the zone from the session
    zone: Zone


@dataclass(frozen=True)
class InstantOf(Function):
    """The instant of a wall-clock time; near a clock change, an instant according to the offset before or after it."""

    TEMPLATE = "{x}"  # SQL takes the zone from the session
    zone: Zone


@dataclass(frozen=True)
class Truncated(Function):
    """The start of the unit that contains a date or wall-clock time."""

    unit: TimeUnit

    def sql(self, argument: str) -> str:
        """Returns ``trunc(date, unit)`` or ``date_trunc(unit, timestamp)``."""
        if pa.types.is_date32(self.type):
            return f"trunc({argument}, '{self.unit.value}')"
        return f"date_trunc('{self.unit.value}', {argument})"


@dataclass(frozen=True)
class PartOf(Function):
    """A field of a date or wall-clock time."""

    TEMPLATE = "{f.part.value}({x})"
    part: CalendarPart


@dataclass(frozen=True)
class PlusMonths(Function):
    """A date or wall-clock time plus a number of months; the last day of the month if that month has no such day."""

    TEMPLATE = "add_months({x}, {f.months})"
    months: int


@dataclass(frozen=True)
class LastDay(Function):
    """The last day of a date's month."""

    TEMPLATE = "last_day({x})"


@dataclass(frozen=True)
class Ticks(Function):
    """Whole units since 1970 (days for a date), rounded down, or toward zero as ``unix_timestamp`` does."""

    unit_us: int
    toward_zero: bool = False

    def sql(self, argument: str) -> str:
        """Returns ``unix_seconds(x)`` or the function of another unit."""
        if self.toward_zero:
            return f"unix_timestamp({argument})"
        names = {1: "unix_micros", 1_000: "unix_millis", 1_000_000: "unix_seconds"}
        return f"{names.get(self.unit_us, 'unix_date')}({argument})"


@dataclass(frozen=True)
class FromTicks(Function):
    """The date or timestamp that is this many units after 1970."""

    unit_us: int

    def sql(self, argument: str) -> str:
        """Returns ``timestamp_seconds(x)`` or the function of another unit."""
        names = {1: "timestamp_micros", 1_000: "timestamp_millis", 1_000_000: "timestamp_seconds"}
        return f"{names.get(self.unit_us, 'date_from_unix_date')}({argument})"


@dataclass(frozen=True)
class Prefix(Function):
    """The first characters of a string; at least one."""

    TEMPLATE = "left({x}, {f.length})"
    length: int


@dataclass(frozen=True)
class FoldedCase(Function):
    """A string in upper or lower case."""

    upper: bool

    def sql(self, argument: str) -> str:
        """Returns ``upper(x)`` or ``lower(x)``."""
        return f"{'upper' if self.upper else 'lower'}({argument})"


@dataclass(frozen=True)
class Prepended(Function):
    """A string with a constant string in front."""

    head: pa.Scalar

    def sql(self, argument: str) -> str:
        """Returns ``concat(head, x)``."""
        return f"concat({literal(self.head)}, {argument})"


@dataclass(frozen=True)
class Zone:
    """A time zone; zones with the same name are equal.

    The offset changes (jumps) come from the engine and not from this machine's zone database: versions of that database
    differ, and a local time that is an hour off would skip a file that holds a matching row.

    Attributes:
        name: As the session spells it.
        jumps_us: int64, ascending; the instants of the jumps in microseconds since 1970.
        offsets_us: int64, one more than jumps; local time minus UTC before the first jump, between two, after the last.
        known_until_us: After this instant the zone may have jumps that are not listed; None if the list is complete.
    """

    name: str
    jumps_us: npt.NDArray[np.int64] = field(compare=False, repr=False)
    offsets_us: npt.NDArray[np.int64] = field(compare=False, repr=False)
    known_until_us: int | None = field(compare=False, repr=False)

    @classmethod
    def fixed(cls, name: str, offset_us: int) -> Zone:
        """Returns a zone without jumps."""
        return cls(name, np.empty(0, np.int64), np.array([offset_us], np.int64), None)
