"""Errors: one class for each status of the C library, each also the built-in exception that a caller would expect."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Type


class Error(Exception):
    """Base of everything this package raises on purpose.

    code: the status of the C library, 1 for an invalid argument and so on; None for errors of msconvert.
    message: the object, the problem and the fix.
    function: the function of the C library that failed; empty for errors of this package.
    details: what is known about the object, for example {"node": "conv1", "op": "Conv"}.
    """

    code: Optional[int] = None

    def __init__(self, message: str, function: str = "", details: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.function = function
        self.details: Dict[str, Any] = dict(details or {})

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return self.message


class InvalidArgumentError(Error, ValueError):
    """The caller passed something wrong."""

    code = 1


class InvalidModelError(Error, ValueError):
    """The bytes of the model are wrong."""

    code = 2


class UnsupportedError(Error, NotImplementedError):
    """Valid, but no delegate or this version can do it."""

    code = 3


class NotFoundError(Error, LookupError):
    """There is nothing of that name or number."""

    code = 4


class MissingFileError(NotFoundError, FileNotFoundError):
    """There is no file of that name."""


class OutOfMemoryError(Error, MemoryError):
    """The system has no more memory."""

    code = 5


class LimitExceededError(Error):
    """A configured limit would be exceeded."""

    code = 6


class CancelledError(Error):
    """Session.cancel stopped the run."""

    code = 7


class DeadlineExceededError(Error, TimeoutError):
    """The run took longer than its timeout."""

    code = 8


class IoError(Error, OSError):
    """A file could not be read or written."""

    code = 9


class DelegateError(Error, RuntimeError):
    """A delegate failed."""

    code = 10


class InternalError(Error, RuntimeError):
    """A bug of msrt: please report it."""

    code = 11


class ConversionError(Error, RuntimeError):
    """msconvert failed.

    problems: the parts of the model that cannot be converted, each with op, reason and cure; empty where something else failed.
    report: everything that msconvert reported.
    """

    def __init__(self, message: str, report: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.report: Dict[str, Any] = dict(report or {})
        self.problems: List[Dict[str, Any]] = list(self.report.get("problems") or [])


class VerificationError(ConversionError):
    """The model was converted, but its outputs differ from the original's by more than the tolerance."""


BY_CODE: Dict[int, Type[Error]] = {
    cls.code: cls
    for cls in (InvalidArgumentError, InvalidModelError, UnsupportedError, NotFoundError, OutOfMemoryError, LimitExceededError,
                CancelledError, DeadlineExceededError, IoError, DelegateError, InternalError)
    if cls.code is not None
}
