"""ctypes declarations of the C library. core/abi/msrt.h documents the structs and functions.

ctypes releases the GIL for the time of every call, so runs of several Python threads overlap.
"""
from __future__ import annotations

import ctypes
import json
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List

from ._errors import BY_CODE, Error, InternalError, InvalidArgumentError

FOLDER = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(FOLDER, "lib")
# A copy of GCC's OpenMP runtime for systems without one (package libgomp1).
FALLBACK = os.path.join(LIB, "fallback")

ABI_VERSION = 2
INPUT, OUTPUT = 0, 1
LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG = 0, 1, 2, 3
REPORT_PLAN, REPORT_PROFILE, REPORT_MEMORY, REPORT_PLAN_TEXT, REPORT_PLAN_SVG = 0, 1, 2, 3, 4
UNKNOWN_DIM = -1
MAX_RANK = 8

LogFn = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
FreeFn = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
EXECUTOR_AUTO, EXECUTOR_STREAM, EXECUTOR_TILES, EXECUTOR_HALO = 0, 1, 2, 3
IMAGE_REPORT_JSON, IMAGE_REPORT_SVG = 0, 1


class RuntimeConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("threads", c_int32), ("log_level", c_int32), ("log", LogFn), ("log_user", c_void_p),
        ("allocate", c_void_p), ("deallocate", c_void_p), ("allocator_user", c_void_p), ("parallel_for", c_void_p),
        ("parallel_user", c_void_p), ("destroy_user_data", c_void_p), ("wake_threads_seconds", ctypes.c_double),
    ]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("dtype", c_int32), ("rank", c_int32), ("dims", c_int64 * MAX_RANK), ("symbols", c_char_p * MAX_RANK),
        ("name", c_char_p), ("bytes", c_size_t), ("list_depth", c_int32), ("state_role", c_int32), ("function", c_void_p),
    ]


class NamedDims(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("rank", c_int32), ("dims", POINTER(c_int64))]


STATE_ROLES = ("cache", "parameter", "optimizer", "statistic")  # by number
ACCURACIES = ("default", "exact", "fast")  # by number


class ModelConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("copy_file", c_int32), ("accuracy", c_int32), ("strict", c_int32), ("delegates", c_char_p),
        ("disabled_passes", c_char_p), ("typical", POINTER(NamedDims)), ("typical_count", c_size_t), ("binding_cache_bytes", c_size_t),
        ("pins", c_char_p), ("costs_file", c_char_p), ("io_devices", c_char_p),
    ]


class SessionConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("profile", c_int32), ("memory_cap_bytes", c_size_t), ("stream_priority", c_int32), ("reserved", c_int32),
        ("share_state", c_void_p),
    ]


class RunConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_int32), ("timeout_us", c_int64), ("max_depth", c_int64), ("max_calls", c_int64),
    ]


class ImageInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("dtype", c_int32), ("channels", c_int64), ("rows", c_int64), ("columns", c_int64),
        ("has_no_data", c_int32), ("reserved", c_int32), ("no_data", ctypes.c_double),
    ]


class ImageBox(ctypes.Structure):
    _fields_ = [(name, c_int64) for name in ("channel", "row", "column", "channels", "rows", "columns")]


class ImageProgress(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("fraction", "seconds", "seconds_left", "pixels_per_second")]


BoxFn = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(ImageBox), c_void_p, c_int64, c_int64)
ProgressFn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(ImageProgress))


class ImageOutput(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("path", c_char_p), ("class_bits", c_int32), ("reserved", c_int32), ("write", BoxFn), ("write_user", c_void_p),
    ]


class ImageConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("executor", c_int32), ("model", c_char_p), ("image", c_char_p), ("source", POINTER(ImageInfo)),
        ("read", BoxFn), ("read_user", c_void_p), ("outputs", POINTER(ImageOutput)), ("output_count", c_size_t),
        ("memory_limit_bytes", c_size_t), ("split_rows", c_int32), ("split_columns", c_int32), ("normalize", c_char_p), ("bands", c_char_p),
        ("level", c_int32), ("page", c_int32), ("mask", c_char_p), ("ignore_no_data", c_int32), ("resume", c_int32), ("overwrite", c_int32),
        ("reserved", c_int32), ("progress", ProgressFn), ("progress_user", c_void_p), ("model_config", POINTER(ModelConfig)),
    ]


LOSSES = ("cross_entropy", "mean_squares", "mean_absolute", "huber", "binary_cross_entropy", "binary_cross_entropy_with_logits",
          "kullback_leibler", "dice")  # by number
PRECISIONS = ("f32", "mixed")  # by number
BOOSTS = ("O1", "off", "O2", "O3")  # by number
ReadBatchFn = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int64, c_int64, POINTER(c_void_p), POINTER(c_void_p))


class DatasetConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("shuffle", c_int32), ("path", c_char_p), ("batch", c_int64), ("channels", c_int64), ("rows", c_int64),
        ("columns", c_int64), ("seed", c_uint64), ("augment", c_char_p), ("normalize", c_char_p), ("classes_of", c_void_p),
        ("test", c_int32), ("skip_unreadable", c_int32), ("dense_targets", c_int32), ("background_threads", c_int32),
        ("read", ReadBatchFn), ("read_user", c_void_p), ("batch_count", c_int64), ("input_count", c_size_t),
    ]


class ParameterGroup(ctypes.Structure):
    _fields_ = [("pattern", c_char_p), ("rate_factor", c_double), ("weight_decay", c_double)]


class TrainerConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("loss", c_int32), ("model", c_char_p), ("graph", c_void_p), ("output", c_int64),
        ("target_is_distribution", c_int32), ("has_ignored_class", c_int32), ("ignored_class", c_int64), ("label_smoothing", c_double),
        ("class_weights", POINTER(c_double)), ("class_weight_count", c_size_t), ("huber_delta", c_double), ("optimizer", c_char_p),
        ("weight_decay", c_double), ("decay_vectors", c_int32), ("dynamic_loss_scale", c_int32), ("loss_scale", c_double),
        ("clip_value", c_double), ("clip_norm", c_double), ("accumulation", c_int64), ("frozen", c_char_p),
        ("groups", POINTER(ParameterGroup)), ("group_count", c_size_t), ("average_decay", c_double), ("learning_rate", c_double),
        ("schedule", c_char_p), ("total_steps", c_int64), ("safe_steps", c_int32), ("reserved", c_int32), ("memory_cap_bytes", c_size_t),
        ("model_config", POINTER(ModelConfig)), ("activation_memory", c_char_p), ("precision", c_int32), ("boost", c_int32),
    ]


class StepResult(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("updated", c_int32), ("skipped", c_int32), ("reserved", c_int32), ("loss", c_double),
        ("correct", c_int64), ("learning_rate", c_double), ("gradient_norm", c_double), ("steps", c_int64),
    ]


class Evaluation(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_int32), ("count", c_int64), ("loss", c_double), ("accuracy", c_double),
        ("top5", c_double), ("mean_iou", c_double),
    ]


class TrainProgress(ctypes.Structure):
    _fields_ = [
        ("epoch", c_int64), ("epochs", c_int64), ("batch", c_int64), ("batches", c_int64), ("steps", c_int64), ("loss", c_double),
        ("learning_rate", c_double), ("samples_per_second", c_double), ("seconds_left", c_double),
    ]


class TrainEpoch(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_int32), ("epoch", c_int64), ("steps", c_int64), ("loss", c_double),
        ("accuracy", c_double), ("learning_rate", c_double), ("eval_loss", c_double), ("eval_accuracy", c_double), ("eval_top5", c_double),
        ("eval_iou", c_double), ("seconds", c_double), ("samples_per_second", c_double),
    ]


TrainProgressFn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TrainProgress))
TrainEpochFn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TrainEpoch))


class FitConfig(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint32), ("resume", c_int32), ("data", c_void_p), ("eval", c_void_p), ("epochs", c_int64), ("output", c_char_p),
        ("checkpoint_every", c_int64), ("keep", c_int64), ("early_stop", c_int64), ("progress", TrainProgressFn),
        ("epoch_done", TrainEpochFn), ("user", c_void_p),
    ]


HANDLE, OUT_HANDLE, OUT_TEXT, OUT_SIZE = c_void_p, POINTER(c_void_p), POINTER(c_char_p), POINTER(c_size_t)
DIMS = POINTER(c_int64)

# Functions that return a status, with their parameters.
CALLS: Dict[str, List[Any]] = {
    "msrt_runtime_create": [POINTER(RuntimeConfig), OUT_HANDLE],
    "msrt_runtime_info_json": [HANDLE, OUT_TEXT],
    "msrt_runtime_calibrate": [HANDLE],
    "msrt_runtime_load_plugin": [HANDLE, c_char_p, c_char_p],
    "msrt_tensor_wrap": [HANDLE, c_int32, c_int32, DIMS, c_void_p, c_size_t, FreeFn, c_void_p, OUT_HANDLE],
    "msrt_tensor_get_info": [HANDLE, POINTER(TensorInfo)],
    "msrt_tensor_data": [HANDLE, POINTER(c_void_p)],
    "msrt_tensor_from_dlpack": [HANDLE, c_void_p, OUT_HANDLE],
    "msrt_tensor_to_dlpack": [HANDLE, POINTER(c_void_p)],
    "msrt_list_create": [HANDLE, OUT_HANDLE],
    "msrt_list_append": [HANDLE, HANDLE],
    "msrt_list_append_list": [HANDLE, HANDLE],
    "msrt_list_length": [HANDLE, OUT_SIZE],
    "msrt_list_element": [HANDLE, c_size_t, OUT_HANDLE],
    "msrt_list_element_list": [HANDLE, c_size_t, OUT_HANDLE],
    "msrt_model_load_file": [HANDLE, c_char_p, POINTER(ModelConfig), OUT_HANDLE],
    "msrt_model_load_memory": [HANDLE, c_void_p, c_size_t, FreeFn, c_void_p, POINTER(ModelConfig), OUT_HANDLE],
    "msrt_model_info_json": [HANDLE, OUT_TEXT],
    "msrt_session_create": [HANDLE, c_char_p, POINTER(SessionConfig), OUT_HANDLE],
    "msrt_session_clone": [HANDLE, OUT_HANDLE],
    "msrt_session_io_count": [HANDLE, c_int32, OUT_SIZE],
    "msrt_session_io_info": [HANDLE, c_int32, c_size_t, POINTER(TensorInfo)],
    "msrt_session_bind": [HANDLE, c_int32, c_size_t, HANDLE],
    "msrt_session_bind_list": [HANDLE, c_size_t, HANDLE],
    "msrt_session_take_output": [HANDLE, c_size_t, OUT_HANDLE],
    "msrt_session_output_list": [HANDLE, c_size_t, OUT_HANDLE],
    "msrt_session_run": [HANDLE, POINTER(RunConfig)],
    "msrt_session_cancel": [HANDLE],
    "msrt_session_state_count": [HANDLE, OUT_SIZE],
    "msrt_session_state_info": [HANDLE, c_size_t, POINTER(TensorInfo)],
    "msrt_session_state_read": [HANDLE, c_size_t, OUT_HANDLE],
    "msrt_session_state_write": [HANDLE, c_size_t, HANDLE],
    "msrt_session_state_reset": [HANDLE, c_size_t],
    "msrt_session_state_copy": [HANDLE, HANDLE],
    "msrt_session_report": [HANDLE, c_int32, OUT_TEXT],
    "msrt_session_trim": [HANDLE],
    "msrt_image_create": [HANDLE, POINTER(ImageConfig), OUT_HANDLE],
    "msrt_image_get_info": [HANDLE, c_int32, c_size_t, POINTER(ImageInfo)],
    "msrt_image_run": [HANDLE],
    "msrt_image_cancel": [HANDLE],
    "msrt_image_report": [HANDLE, c_int32, OUT_TEXT],
    "msrt_dataset_create": [HANDLE, POINTER(DatasetConfig), OUT_HANDLE],
    "msrt_dataset_info_json": [HANDLE, OUT_TEXT],
    "msrt_trainer_create": [HANDLE, POINTER(TrainerConfig), OUT_HANDLE],
    "msrt_trainer_info_json": [HANDLE, OUT_TEXT],
    "msrt_trainer_step": [HANDLE, POINTER(c_void_p), c_size_t, HANDLE, POINTER(StepResult)],
    "msrt_trainer_set_rate": [HANDLE, c_double],
    "msrt_trainer_predict": [HANDLE, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t],
    "msrt_trainer_evaluate_batch": [HANDLE, POINTER(c_void_p), c_size_t, HANDLE, POINTER(Evaluation)],
    "msrt_trainer_evaluate": [HANDLE, HANDLE, POINTER(Evaluation)],
    "msrt_trainer_fit": [HANDLE, POINTER(FitConfig), POINTER(TrainEpoch)],
    "msrt_trainer_cancel": [HANDLE],
    "msrt_trainer_state_read": [HANDLE, c_char_p, OUT_HANDLE],
    "msrt_trainer_state_write": [HANDLE, c_char_p, HANDLE],
    "msrt_trainer_save": [HANDLE, c_char_p],
    "msrt_trainer_restore": [HANDLE, c_char_p],
    "msrt_trainer_export": [HANDLE, c_char_p],
    "msrt_trainer_export_model": [HANDLE, POINTER(ModelConfig), OUT_HANDLE],
}
TEXTS = ("msrt_version", "msrt_error_message", "msrt_error_json")
KINDS = ("runtime", "tensor", "list", "model", "session", "image", "dataset", "trainer")


def _load_openmp() -> None:
    """Makes sure that there is a libgomp.so.1 in the process, since libmsrt.so and oneDNN need one.

    One that is loaded already is used, whatever folder it came from: PyTorch brings its own, and both libraries share its threads. Then
    comes that of the system, and only where there is none the copy in this package.
    """
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        fallback = os.path.join(FALLBACK, "libgomp.so.1")
        if os.path.exists(fallback):  # a build without OpenMP has none
            ctypes.CDLL(fallback)


def _load() -> ctypes.CDLL:
    path = os.path.join(LIB, "libmsrt.so")
    try:
        _load_openmp()
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"msrt: {path} cannot be loaded: {error}; install a wheel that was built for this system's C library") from error
    library.msrt_abi_version.restype = c_uint32
    if library.msrt_abi_version() != ABI_VERSION:
        raise ImportError(f"msrt: {path} has ABI {library.msrt_abi_version()}, this package needs {ABI_VERSION}; install the wheel again")
    for name, arguments in CALLS.items():
        getattr(library, name).argtypes = arguments
        getattr(library, name).restype = c_int32
    for name in TEXTS:
        getattr(library, name).argtypes = []
        getattr(library, name).restype = c_char_p
    for kind in KINDS:
        getattr(library, f"msrt_{kind}_destroy").argtypes = [HANDLE]
        getattr(library, f"msrt_{kind}_destroy").restype = None
    return library


library = _load()
DESTROY: Dict[str, Callable[..., None]] = {kind: getattr(library, f"msrt_{kind}_destroy") for kind in KINDS}


def _error(status: int) -> Error:
    known = json.loads(library.msrt_error_json())
    return BY_CODE.get(status, InternalError)(known["message"], known["function"], known["details"])


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function of the library and raises what it reports."""
    status = function(*arguments)
    if status != 0:
        raise _error(status)


def text_of(function: Callable[..., int], *arguments: Any) -> str:
    """The text that a function of the library returns through its last parameter."""
    out = c_char_p()
    call(function, *arguments, ctypes.byref(out))
    return (out.value or b"").decode("utf-8", "replace")


def encode(text: str, argument: str) -> bytes:
    """Encodes a string for the library. Refuses a zero character, which would end the string early."""
    if "\0" in text:
        raise InvalidArgumentError(f"{argument} {text!r} contains a zero character; remove it")
    return os.fsencode(text)


def dims_of(shape: Any) -> Any:
    return (c_int64 * len(shape))(*shape)


# Counts forks: threads do not survive one, so a child process must not use what its parent made.
generation = 0


def _count_fork() -> None:
    global generation
    generation += 1


os.register_at_fork(after_in_child=_count_fork)


class Handle:
    """Owns a handle of the library. The library keeps objects alive that other objects still need."""

    __slots__ = ("_pointer", "_kind", "_generation", "_destroy", "__weakref__")

    def __init__(self, kind: str, function: Callable[..., int], *arguments: Any) -> None:
        """Calls the function, whose last parameter returns the handle."""
        self._pointer = c_void_p()
        call(function, *arguments, ctypes.byref(self._pointer))
        self._kind = kind
        self._generation = generation
        self._destroy = DESTROY[kind]

    @classmethod
    def adopt(cls, kind: str, address: int) -> "Handle":
        """Owns a handle that the library has returned in an array."""
        made = cls.__new__(cls)
        made._pointer, made._kind, made._generation, made._destroy = c_void_p(address), kind, generation, DESTROY[kind]
        return made

    @property
    def pointer(self) -> c_void_p:
        if self._generation != generation:
            raise InvalidArgumentError(
                f"this {self._kind} was made before the process forked, and its threads are not here: load the model in the child process, "
                "or start it with multiprocessing's method 'spawn'")
        return self._pointer

    def __del__(self) -> None:
        if self._pointer and getattr(self, "_generation", None) == generation:
            self._destroy(self._pointer)
