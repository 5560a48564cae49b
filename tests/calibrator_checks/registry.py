"""The list of checks, each with the abilities that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrator_checks.calibrators import ABILITIES


@dataclass(frozen=True)
class Check:
    run: Callable[[Any], None]
    needs: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.run.__name__.removeprefix("check_")

    def applies_to(self, calibrator: Any) -> bool:
        return all(ABILITIES[need](calibrator) for need in self.needs)


CHECKS: list[Check] = []


def check(*needs: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        CHECKS.append(Check(function, needs))
        return function

    return register
