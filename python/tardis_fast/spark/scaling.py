"""Decimal text into scaled integers, exactly, in SQL that Spark runs itself.

The text is never read as a double. It is taken apart at the point, and its digits are put together
again as a whole number: so a value is either exact or has a reason why it cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass

_NUMBER = "'^-?[0-9]+([.][0-9]+)?$'"


@dataclass(frozen=True)
class Scale:
    """A power of ten by which a kind of figure is multiplied."""

    digits: int

    @property
    def suffix(self) -> str:
        """What the names of such columns end in."""
        return f"_e{self.digits}"


E6, E8, E9 = Scale(6), Scale(8), Scale(9)


def scaled(text: str, scale: Scale, *, rounded: bool = False) -> str:
    """Return the SQL of a text's scaled integer; NULL if there is none.

    `rounded` cuts digits that the scale has no room for, half to even.
    """
    if rounded:
        # 27 digits after the point leave 11 before it: as many as 64 bits have room for at 1e8.
        exact = f"try_cast({text} AS DECIMAL(38, 27))"
        figure = f"bround({exact}, {scale.digits}) * CAST({10**scale.digits} AS DECIMAL(10, 0))"
        return f"CASE WHEN {text} RLIKE {_NUMBER} THEN try_cast({figure} AS BIGINT) END"
    whole = f"split_part({text}, '.', 1)"
    digits = f"concat({whole}, rpad({_fraction(text)}, {scale.digits}, '0'))"
    fits = f"{text} RLIKE {_NUMBER} AND length({_fraction(text)}) <= {scale.digits}"
    return f"CASE WHEN {fits} THEN try_cast({digits} AS BIGINT) END"


def misfit(  # noqa: PLR0913 - what is said of a figure
    name: str, value: str, text: str, scale: Scale, *, required: bool = False, rounded: bool = False
) -> str:
    """Return the SQL of why a text has no scaled integer `value`; NULL if all is well."""
    missing = f"'{name} is missing'" if required else "NULL"
    shown = f"left({text}, 60)"
    too_fine = "false" if rounded else f"length({_fraction(text)}) > {scale.digits}"
    return (
        f"CASE WHEN {value} IS NOT NULL THEN NULL "
        f"WHEN {text} IS NULL OR {text} = '' THEN {missing} "
        f"WHEN NOT {text} RLIKE {_NUMBER} THEN concat('{name} is no number: ', {shown}) "
        f"WHEN {too_fine} "
        f"THEN concat('{name} has more than {scale.digits} decimals: ', {shown}) "
        f"ELSE concat('{name} times 1e{scale.digits} does not fit 64 bits: ', {shown}) END"
    )


def _fraction(text: str) -> str:
    return f"trim(TRAILING '0' FROM split_part({text}, '.', 2))"
