"""Arithmetic as a tree: a formula is written once, and printed in the language of each engine.

Operators of Python and the functions below build a tree; a `Language` prints it. There are numbers, names, + − × ÷, and
`exp`, `ln`, `sqrt`, `sinh`, `size`, `least`, `greatest`, `total` and `where`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias, final

Operand: TypeAlias = "Expression | float"


@final
@dataclass(frozen=True)
class Expression:
    """One operation and what it is of: a name, a number, or an operator and its operands.

    Args:
        operator: `name`, `number`, or what is done.
        operands: What it is done to.
        text: Of a name or a number.
    """

    operator: str
    operands: tuple[Expression, ...] = ()
    text: str = ""

    def __add__(self, other: Operand) -> Expression:
        return _apply("add", self, other)

    def __sub__(self, other: Operand) -> Expression:
        return _apply("subtract", self, other)

    def __mul__(self, other: Operand) -> Expression:
        return _apply("multiply", self, other)

    def __truediv__(self, other: Operand) -> Expression:
        return _apply("divide", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _apply("add", other, self)

    def __rsub__(self, other: Operand) -> Expression:
        return _apply("subtract", other, self)

    def __rmul__(self, other: Operand) -> Expression:
        return _apply("multiply", other, self)

    def __neg__(self) -> Expression:
        return _apply("subtract", 0.0, self)

    def names(self) -> list[str]:
        """The names in it, each once, in the order in which they come."""
        found = [self.text] if self.operator == "name" else [one for x in self.operands for one in x.names()]
        return list(dict.fromkeys(found))


def name(text: str) -> Expression:
    """What was given, or worked out before, under a name."""
    return Expression("name", text=text)


def number(value: float) -> Expression:
    """A number in full, so that no digit is lost; with an exponent, so that every language takes it as a double."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return Expression("number", text=f"({text})" if value < 0 else text)


def exp(x: Expression) -> Expression:
    """eˣ, of x ≥ −690 wherever an engine may refuse what is next to nothing."""
    return _apply("exp", x)


def ln(x: Expression) -> Expression:
    """The natural logarithm."""
    return _apply("ln", x)


def sqrt(x: Expression) -> Expression:
    """The square root."""
    return _apply("sqrt", x)


def sinh(x: Expression) -> Expression:
    """(eˣ − e⁻ˣ)/2, exact near 0, where that difference is not."""
    return _apply("sinh", x)


def size(x: Expression) -> Expression:
    """|x|."""
    return _apply("size", x)


def least(x: Operand, y: Operand) -> Expression:
    """The smaller one."""
    return _apply("least", x, y)


def greatest(x: Operand, y: Operand) -> Expression:
    """The larger one."""
    return _apply("greatest", x, y)


def total(terms: list[Expression]) -> Expression:
    """The sum of at least one term."""
    return _apply("total", *terms) if len(terms) > 1 else terms[0]


def where(smaller: Operand, larger: Operand, then: Operand, otherwise: Operand) -> Expression:
    """One of two numbers: the first if `smaller` is below `larger`."""
    return _apply("where", smaller, larger, then, otherwise)


def _apply(operator: str, *operands: Operand) -> Expression:
    return Expression(operator, tuple(x if isinstance(x, Expression) else number(x) for x in operands))


INFIX = {"add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})"}
PLAIN = {one: f"{one}({{}})" for one in ("exp", "ln", "sqrt", "sinh")}
SQL = {
    **INFIX,
    **PLAIN,
    "size": "abs({})",
    "least": "least({}, {})",
    "greatest": "greatest({}, {})",
    "where": "CASE WHEN {} < {} THEN {} ELSE {} END",
}


@final
@dataclass(frozen=True)
class Language:
    """How a language writes each operation.

    Args:
        templates: By operator, with a pair of braces for each operand.
    """

    templates: Mapping[str, str]

    @classmethod
    def like_sql(cls, **different: str) -> Self:
        """SQL, but for what is different.

        Args:
            different: Templates by operator.
        """
        return cls({**SQL, **different})

    def write(self, x: Expression, names: Mapping[str, str] | None = None) -> str:
        """An expression as text.

        Args:
            x: The expression.
            names: What names are called here; those left out are called what they are.

        >>> Language.like_sql().write(2 * name("x") + exp(name("y")), {"y": "t[1]"})
        '((2.0e0 * x) + exp(t[1]))'
        """
        if x.operator == "name":
            return (names or {}).get(x.text, x.text)
        if x.operator == "number":
            return x.text
        written = [self.write(one, names) for one in x.operands]
        if x.operator == "total":
            return f"({' + '.join(written)})"
        return self.templates[x.operator].format(*written)
