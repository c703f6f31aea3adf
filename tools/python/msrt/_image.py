"""Models over images of any size, under a memory limit: files or arrays in, files or arrays out."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library as c
from ._errors import InvalidArgumentError
from ._runtime import Runtime, shared_runtime
from ._types import NAMES, NUMBERS, Array, name_of, numpy_dtype

Path = Union[str, "os.PathLike[str]"]
_EXECUTORS = {"auto": c.EXECUTOR_AUTO, "stream": c.EXECUTOR_STREAM, "tiles": c.EXECUTOR_TILES, "halo": c.EXECUTOR_HALO}
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_FAILED = 1  # the status of a callback that raised


def _bytes_of(memory: Union[int, str]) -> int:
    """2 GiB of "2GiB"."""
    if isinstance(memory, int):
        return memory
    digits = memory.rstrip("kKmMgGiIbB ")
    unit = _UNITS.get(memory[len(digits):].strip().lower())
    try:
        return int(float(digits) * unit)  # type: ignore[operator]
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"memory is {memory!r}, must be a number of bytes or look like '2GiB' or '1500MB'") from None


def _memory_at(box: c.ImageBox, data: int, dtype: "np.dtype[Any]", channel_stride: int, row_stride: int) -> Array:
    """The box in the library's memory as an array."""
    shape = (box.channels, box.rows, box.columns)
    elements = (shape[0] - 1) * channel_stride + (shape[1] - 1) * row_stride + shape[2]
    memory = (ctypes.c_char * (elements * dtype.itemsize)).from_address(data)
    strides = (channel_stride * dtype.itemsize, row_stride * dtype.itemsize, dtype.itemsize)
    return np.ndarray(shape, dtype, memory, strides=strides)


def _part_of(box: c.ImageBox) -> Tuple[slice, slice, slice]:
    return (slice(box.channel, box.channel + box.channels), slice(box.row, box.row + box.rows),
            slice(box.column, box.column + box.columns))


class ImageJob:
    """A model over one image. `msrt.run_image` describes the arguments; this class also plans without running, and cancels.

    Creating a job opens the image, compiles the model for it and plans the work; no file is written.
    """

    def __init__(self, model: Path, image: Any, output: Optional[Path] = None, *, memory: Union[int, str] = 0,
                 executor: Literal["auto", "stream", "tiles", "halo"] = "auto", split: Tuple[int, int] = (1, 1),
                 normalize: Optional[Union[str, Mapping[str, Any]]] = None, classes: Union[bool, Literal[8, 16]] = False,
                 head: Optional[str] = None, outputs: Optional[Mapping[str, Optional[Path]]] = None, bands: Optional[Sequence[int]] = None,
                 level: int = 0, page: int = 0, mask: Optional[Path] = None, use_no_data: bool = True, no_data: Optional[float] = None,
                 resume: bool = False, overwrite: bool = False, progress: Optional[Callable[[Dict[str, float]], None]] = None,
                 delegate: Optional[str] = None, identity: Optional[str] = None, runtime: Optional[Runtime] = None) -> None:
        if executor not in _EXECUTORS:
            raise InvalidArgumentError(f"executor is {executor!r}, must be one of {', '.join(_EXECUTORS)}")
        self._error: Optional[BaseException] = None
        self._kept: List[Any] = []  # what the library refers to
        self._progress = progress
        self._arrays: Dict[int, Array] = {}  # results in memory, by output
        config = c.ImageConfig(struct_size=ctypes.sizeof(c.ImageConfig), executor=_EXECUTORS[executor],
                               model=c.encode(os.fspath(model), "model"), memory_limit_bytes=_bytes_of(memory), split_rows=split[0],
                               split_columns=split[1], level=level, page=page, ignore_no_data=int(not use_no_data), resume=int(resume),
                               overwrite=int(overwrite))
        if isinstance(image, (str, os.PathLike)):
            config.image = c.encode(os.fspath(image), "image")
        else:
            self._set_array(config, image, no_data)
            config.source_identity = self._text(identity, "identity")
        config.normalize = self._text(_normalization(normalize), "normalize")
        config.bands = self._text(None if bands is None else ",".join(map(str, bands)), "bands")
        config.mask = self._text(None if mask is None else os.fspath(mask), "mask")
        if progress is not None:
            config.progress = self._keep(c.ProgressFn(self._report_progress))
        if delegate is not None:
            chosen = self._keep(c.ModelConfig(struct_size=ctypes.sizeof(c.ModelConfig), delegates=c.encode(delegate, "delegate")))
            config.model_config = ctypes.pointer(chosen)
        wanted = [(head, output, -1 if classes is True else int(classes))]
        wanted += [(name, path, 0) for name, path in (outputs or {}).items()]
        entries = self._keep((c.ImageOutput * len(wanted))())
        for index, (entry, (name, path, bits)) in enumerate(zip(entries, wanted)):
            entry.name, entry.class_bits = self._text(name, "head"), bits
            entry.path = self._text(None if path is None else os.fspath(path), "output")
            if path is None:
                entry.write = self._keep(c.BoxFn(self._writer(index)))
        config.outputs, config.output_count = entries, len(wanted)
        self._runtime = runtime or shared_runtime()
        self._handle = c.Handle("image", c.library.msrt_image_create, self._runtime.handle.pointer, ctypes.byref(config))
        for index, (_, path, _) in enumerate(wanted):
            if path is None:
                info = self._info(c.OUTPUT, index)
                self._arrays[index] = np.empty((info.channels, info.rows, info.columns), numpy_dtype(NAMES[info.dtype]))

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    @staticmethod
    def _text(text: Optional[str], argument: str) -> Optional[bytes]:
        return None if text is None else c.encode(text, argument)

    def _set_array(self, config: c.ImageConfig, image: Any, no_data: Optional[float]) -> None:
        """An array of channels x rows x columns; anything that is sliced into arrays will do (memmap, zarr, h5py)."""
        shape, dtype = getattr(image, "shape", ()), np.dtype(getattr(image, "dtype", object))
        name = name_of(dtype)
        if len(shape) != 3 or name is None:
            raise InvalidArgumentError("image must be a path or an array of channels x rows x columns of a number type; "
                                       f"its shape is {tuple(shape)}, its type {dtype}")
        info = self._keep(c.ImageInfo(struct_size=ctypes.sizeof(c.ImageInfo), dtype=NUMBERS[name], channels=shape[0], rows=shape[1],
                                      columns=shape[2], has_no_data=int(no_data is not None), no_data=no_data or 0.0))

        def read(_user: Any, box: Any, data: int, channel_stride: int, row_stride: int) -> int:
            def copy() -> None:
                _memory_at(box[0], data, dtype, channel_stride, row_stride)[...] = image[_part_of(box[0])]
            return self._guard(copy)
        config.source, config.read = ctypes.pointer(info), self._keep(c.BoxFn(read))

    def _writer(self, index: int) -> Callable[..., int]:
        def write(_user: Any, box: Any, data: int, channel_stride: int, row_stride: int) -> int:
            def copy() -> None:
                to = self._arrays[index]
                to[_part_of(box[0])] = _memory_at(box[0], data, to.dtype, channel_stride, row_stride)
            return self._guard(copy)
        return write

    def _guard(self, action: Callable[[], None]) -> int:
        try:
            action()
            return 0
        except BaseException as error:  # noqa: B902, raised again by run()
            self._error = error
            return _FAILED

    def _report_progress(self, _user: Any, given: Any) -> None:
        def report() -> None:
            assert self._progress is not None
            self._progress({name: getattr(given[0], name) for name, _ in c.ImageProgress._fields_})
        if self._guard(report) != 0:
            self.cancel()

    def _info(self, kind: int, index: int) -> c.ImageInfo:
        info = c.ImageInfo(struct_size=ctypes.sizeof(c.ImageInfo))
        c.call(c.library.msrt_image_get_info, self._handle.pointer, kind, index, ctypes.byref(info))
        return info

    def run(self) -> Dict[str, Any]:
        """Runs once and returns the report. After an error, unfinished files stay, for `resume`."""
        try:
            c.call(c.library.msrt_image_run, self._handle.pointer)
        except Exception:
            if self._error is not None:
                raise self._error from None
            raise
        if self._error is not None:  # of the last progress report
            raise self._error
        return self.report

    def cancel(self) -> None:
        """Stops the run, which raises `CancelledError`. May be called from any thread."""
        c.call(c.library.msrt_image_cancel, self._handle.pointer)

    @property
    def report(self) -> Dict[str, Any]:
        """Image, results and plan; after a run also time, peak memory and rows that were computed twice."""
        report: Dict[str, Any] = json.loads(c.text_of(c.library.msrt_image_report, self._handle.pointer, c.IMAGE_REPORT_JSON))
        return report

    @property
    def results(self) -> Dict[str, Array]:
        """The results that go to memory, by name: arrays of channels x rows x columns."""
        names = [output["name"] for output in self.report["outputs"]]
        return {names[index]: array for index, array in self._arrays.items()}

    def explain(self) -> str:
        """A picture of the plan as SVG: strips or tiles, and memory."""
        return c.text_of(c.library.msrt_image_report, self._handle.pointer, c.IMAGE_REPORT_SVG)


def _normalization(given: Optional[Union[str, Mapping[str, Any]]]) -> Optional[str]:
    if given is None or isinstance(given, str):
        return given
    parts = []
    for name, numbers in given.items():
        listed = numbers if isinstance(numbers, (list, tuple, np.ndarray)) else [numbers]
        parts.append(f"{name}=" + ",".join(repr(float(number)) for number in listed))
    return " ".join(parts)


def run_image(model: Path, image: Any, output: Optional[Path] = None, **options: Any) -> Any:
    """Runs a model over an image of any size. The bits are those of a run on the whole image with accuracy "exact".

    model: a .msrt file with one input, f32[1, channels, rows, columns], and outputs that follow the image.
    image: a TIFF, PNG, JPEG or .npy file, what GDAL and OpenSlide read where they are installed, or an array of channels x rows x columns.
    output: a .tif, .tiff or .npy file, which has its name only when it is complete; the report is returned. None: arrays are returned,
        {name of the output: channels x rows x columns}.
    memory: the limit in bytes, or as "2GiB"; 0: half of the machine's memory.
    executor: "stream" (rolling rows), "tiles" or "auto".
    normalize: {"mean": [...], "std": [...]} or {"scale": 1 / 255, "offset": 0}; one number, or one for each channel.
    classes: True: the channel with the largest value in 8 or 16 bits, with palette and overviews; 8, 16: in so many bits.
    head: the output of the model that `output` holds; None: the first.
    outputs: further outputs, {name: file}; None instead of a file: an array.
    bands: numbers of the channels for the model, from 1.
    level, page: of a file with a pyramid or several images.
    mask: an image that is 0 where there is no content. Regions without content are not computed: NaN, or 255 or 65535 in class maps.
    use_no_data: whether pixels of the image's no-data value have no content. no_data: this value for an array.
    resume: continue files that an interrupted job has left. overwrite: replace existing files.
    identity: of an array, for `resume`, which does not compare its pixels: a text that differs for arrays that differ.
    progress: called with {"fraction", "seconds", "seconds_left", "pixels_per_second"}; an exception cancels the run.
    delegate: names of the delegates to allow, comma-separated. runtime: threads to share.
    """
    job = ImageJob(model, image, output, **options)
    report = job.run()
    return job.results if output is None else report
