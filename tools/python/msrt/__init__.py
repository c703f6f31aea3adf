"""msrt: an embeddable runtime for neural networks.

    import msrt

    msrt.convert("resnet18.onnx", "resnet18.msrt")
    model = msrt.load("resnet18.msrt")
    outputs = model.run({"image": array})          # NumPy in, NumPy out

`help(msrt.load)`, `help(msrt.Model)`, `help(msrt.Session)` and, for images of any size, `help(msrt.run_image)` have the rest;
`help(msrt.Trainer)` is about training.
"""
from ._errors import (CancelledError, ConversionError, DeadlineExceededError, DelegateError, Error, InternalError, InvalidArgumentError,
                      InvalidModelError, IoError, LimitExceededError, MissingFileError, NotFoundError, OutOfMemoryError,
                      UnsupportedError, VerificationError)
from ._image import ImageJob, run_image
from ._library import library as _c
from ._model import Model, load
from ._runtime import Runtime
from ._session import Session
from ._tensor import Tensor, from_dlpack
from ._tools import check, convert, verify
from ._train import Batches, Dataset, Epoch, Evaluation, Step, Trainer
from ._types import TensorSpec


def version() -> str:
    """The release of the library, "major.minor.patch"."""
    return str(_c.msrt_version().decode())


__version__ = version()
__all__ = [
    "Batches", "CancelledError", "ConversionError", "Dataset", "DeadlineExceededError", "DelegateError", "Epoch", "Error", "Evaluation", "ImageJob", "InternalError",
    "InvalidArgumentError", "InvalidModelError", "IoError", "LimitExceededError", "MissingFileError", "Model", "NotFoundError", "OutOfMemoryError", "Runtime",
    "Session", "Step", "Tensor", "TensorSpec", "Trainer", "UnsupportedError", "VerificationError", "check", "convert", "from_dlpack", "load", "run_image", "verify",
    "version",
]
for _name in __all__:  # users see msrt.Model, not the file it is in
    globals()[_name].__module__ = "msrt"
