"""Parameters that other libraries have: raise an error that says what to write instead."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from calibrant.errors import InvalidTypeError
from calibrant.text.sentences import shown

Estimator = TypeVar("Estimator", bound=type)

ALPHA = "use confidence_level, which is 1 - alpha"


def replaces(**advice: str) -> Callable[[Estimator], Estimator]:
    """Decorate a class so that its constructor says what replaces a parameter of another library.

    Python would only say that the argument is unexpected. The signature is unchanged.

    Examples
    --------
    >>> from calibrant import BinningCalibrator
    >>> try:
    ...     BinningCalibrator(alpha=0.1)
    ... except TypeError as error:
    ...     print(error)
    alpha must be left out; got 0.1: use confidence_level, which is 1 - alpha
    """

    def decorate(estimator: Estimator) -> Estimator:
        made: Callable[..., None] = vars(estimator)["__init__"]

        @wraps(made)
        def told(self: Any, *args: Any, **parameters: Any) -> None:
            for name, instead in advice.items():
                if name in parameters:
                    got = shown(parameters[name])
                    raise InvalidTypeError(name, "be left out", got=got, advice=instead)
            made(self, *args, **parameters)

        estimator.__init__ = told  # type: ignore[misc]
        return estimator

    return decorate
