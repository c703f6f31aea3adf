"""Training: steps, whole runs, checkpoints and the export of trained models."""
from __future__ import annotations

import ctypes
import json
import math
import os
import tempfile
from ctypes import c_double, c_void_p
from typing import Any, Callable, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _library as c
from ._errors import InvalidArgumentError
from ._model import _CONVERTED, Model, Names, _joined
from ._runtime import Runtime, shared_runtime
from ._session import index_of
from ._tensor import Tensor
from ._tools import check_exists, convert
from ._types import Array, TensorSpec
from ._values import tensor_of

Path = Union[str, "os.PathLike[str]"]
_FAILED = 1  # the status of a callback that raised


class Step(NamedTuple):
    """What a training step did."""

    #: The mean over the batch.
    loss: float
    #: Targets that are the likeliest class; None: the loss has no classes.
    correct: Optional[int]
    learning_rate: float
    #: Of all gradients together, before it is limited; None: not computed, since there is no limit.
    gradient_norm: Optional[float]
    #: False: the gradients were accumulated only, or the update was skipped.
    updated: bool
    #: A gradient was not finite, and the dynamic loss scale was reduced.
    skipped: bool
    #: Updates so far.
    steps: int


class Evaluation(NamedTuple):
    """How well a model does on data. None: not known."""

    #: Targets that are classes and count; otherwise samples.
    count: int
    loss: float
    accuracy: Optional[float]
    top5: Optional[float]
    mean_iou: Optional[float]


class Epoch(NamedTuple):
    """A finished epoch. None: not measured."""

    #: Finished epochs.
    epoch: int
    #: Updates so far.
    steps: int
    loss: Optional[float]
    accuracy: Optional[float]
    learning_rate: Optional[float]
    eval_loss: Optional[float]
    eval_accuracy: Optional[float]
    eval_top5: Optional[float]
    eval_iou: Optional[float]
    seconds: Optional[float]
    samples_per_second: Optional[float]


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _epoch_of(given: c.TrainEpoch) -> Epoch:
    return Epoch(*(_known(getattr(given, name)) for name in Epoch._fields))


class Dataset:
    """Pictures or arrays in files, which background threads read and change at random.

    path: a folder with one folder of pictures (JPEG, PNG, TIFF) for each class, a folder with CIFAR-10, CIFAR-100 or MNIST files, a folder
        with images.npy and labels.npy, or "SAMPLES.npy,LABELS.npy".
    batch: samples of a batch.
    shuffle: a new order in each epoch, from `seed`.
    channels: of pictures.
    size: pictures are resized to this, (rows, columns) or one number, after all other changes.
    augment: random changes, for example "crop:32:4 hflip rotate:15 color:0.2,0.2,0.2 mixup:0.2".
    normalize: "mean=123.7,116.3,103.5 std=58.4,57.1,57.4", "scale=1/255"; None: pixels from 0 to 255.
    classes_of: the dataset whose classes these are, in its order; for evaluation.
    test: the test files of CIFAR, MNIST and .npy folders.
    skip_unreadable: leave out samples that cannot be read, with a line in the log.
    dense_targets: probabilities of the classes as targets, not their numbers.
    threads: in the background; None: 2.
    """

    def __init__(self, path: Path, *, batch: int = 32, shuffle: bool = False, seed: int = 0, channels: int = 3,
                 size: Optional[Union[int, Tuple[int, int]]] = None, augment: Optional[str] = None, normalize: Optional[str] = None,
                 classes_of: Optional["Dataset"] = None, test: bool = False, skip_unreadable: bool = False, dense_targets: bool = False,
                 threads: Optional[int] = None, runtime: Optional[Runtime] = None) -> None:
        rows, columns = (size, size) if isinstance(size, int) else size or (0, 0)
        config = c.DatasetConfig(
            struct_size=ctypes.sizeof(c.DatasetConfig), shuffle=int(shuffle), path=c.encode(os.fspath(path), "path"), batch=batch,
            channels=channels, rows=rows, columns=columns, seed=seed, augment=_text(augment, "augment"),
            normalize=_text(normalize, "normalize"), classes_of=None if classes_of is None else classes_of._handle.pointer, test=int(test),
            skip_unreadable=int(skip_unreadable), dense_targets=int(dense_targets),
            background_threads=0 if threads is None else threads or -1)
        runtime = runtime or shared_runtime()
        self._handle = c.Handle("dataset", c.library.msrt_dataset_create, runtime.handle.pointer, ctypes.byref(config))

    @property
    def info(self) -> Dict[str, Any]:
        """Batches of an epoch, samples, names of the classes, dims of a sample, names of samples that could not be read so far."""
        info: Dict[str, Any] = json.loads(c.text_of(c.library.msrt_dataset_info_json, self._handle.pointer))
        return info


class Batches:
    """Batches of the application: read(epoch, batch) returns (inputs, target) for the numbers from 0.

    inputs: the value of the model's input, or those of several by name or in their order. Equal numbers must give equal values if a run
    shall be resumed.
    """

    def __init__(self, read: Callable[[int, int], Tuple[Any, Any]], count: int) -> None:
        self.read = read
        self.count = count

    @classmethod
    def of_arrays(cls, inputs: Any, targets: Any, batch: int = 32, *, shuffle: bool = False, seed: int = 0) -> "Batches":
        """Batches of arrays whose first dim is the number of samples; the last batch may be smaller."""
        inputs, targets = np.asarray(inputs), np.asarray(targets)
        if batch < 1 or len(inputs) != len(targets) or len(inputs) == 0:
            raise InvalidArgumentError(f"{len(inputs)} inputs and {len(targets)} targets in batches of {batch}; the numbers of both must be "
                                       "equal, and all at least 1")

        def read(epoch: int, number: int) -> Tuple[Any, Any]:
            part = slice(number * batch, (number + 1) * batch)
            if not shuffle:
                return inputs[part], targets[part]
            order = np.random.default_rng([seed, epoch]).permutation(len(inputs))[part]
            return inputs[order], targets[order]
        return cls(read, -(-len(inputs) // batch))


Data = Union[Dataset, Batches, Sequence[Tuple[Any, Any]]]


def _text(text: Optional[str], argument: str) -> Optional[bytes]:
    return None if text is None else c.encode(text, argument)


class Trainer:
    """Trains a model: single steps for your own loop, or whole runs.

    model: a .msrt file, an .onnx or .mindir file, or "zoo:lenet" and others (see `msrt.convert`). The first dim of its inputs must be open.
    loss: "cross_entropy", "mean_squares", "mean_absolute", "huber", "binary_cross_entropy", "binary_cross_entropy_with_logits",
        "kullback_leibler" or "dice", as PyTorch defines them; a batch has the mean. Targets of "cross_entropy" are int64 classes, or with
        target_is_distribution=True probabilities like the scores.
    optimizer: "sgd", "momentum:0.9", "nesterov:0.9", "rmsprop", "adagrad", "adam", "adamw:0.9:0.999", "lamb" or "lars".
    schedule: of the learning rate: "constant", "step:SIZE[:FACTOR]", "cosine", "polynomial" or "onecycle", with "+warmup:STEPS".
    total_steps: updates until the end of the schedule; 0: those of a run of `fit`.
    output: the number of the model's output that the loss compares.
    ignored_class, label_smoothing, class_weights, huber_delta: of the losses that have them.
    frozen: patterns of parameters that never change, "layer1.*"; groups: for others (pattern, factor of the rate, weight decay or None).
    clip_norm, clip_value: limits of all gradients together, and of each element; 0: none.
    accumulation: steps whose gradients make one update.
    loss_scale: a number, or "dynamic".
    average_decay: of a moving average of the parameters, which predictions, evaluations and exports use; 0: none.
    safe_steps: a step that fails leaves everything as it was, and the error of a loss that is not finite names the first such value. Costs
        a copy of all state for each step.
    activation_memory: limit of what a step keeps of the forward pass for gradients, "2GiB" or "40%" of what it keeps otherwise; the rest
        is computed again. It is planned for `shapes`.
    precision: "mixed": products of bf16 operands where the processor has such instructions, and bf16 storage of what gradients need.
    boost: "off" (each node as the model has it, for debugging), "O1", "O2" (mixed precision) or "O3" (also what may change convergence);
        `info["changes"]` lists the changes.
    shapes: the dims of inputs in a typical batch, by name, where the model has open ones.
    delegate, accuracy, threads, runtime: as in `msrt.load`.

    A trainer belongs to one thread at a time, except for `cancel`.
    """

    def __init__(self, model: Path, *, loss: str = "cross_entropy", optimizer: str = "momentum:0.9", learning_rate: float = 0.01,
                 schedule: str = "constant", total_steps: int = 0, output: int = 0, target_is_distribution: bool = False,
                 ignored_class: Optional[int] = None, label_smoothing: float = 0.0, class_weights: Optional[Sequence[float]] = None,
                 huber_delta: float = 1.0, weight_decay: float = 0.0, decay_vectors: bool = False, frozen: Optional[Names] = None,
                 groups: Sequence[Tuple[str, float, Optional[float]]] = (), clip_norm: float = 0.0, clip_value: float = 0.0,
                 accumulation: int = 1, loss_scale: Union[float, Literal["dynamic"]] = 1.0, average_decay: float = 0.0,
                 safe_steps: bool = False, activation_memory: Optional[str] = None, precision: Literal["f32", "mixed"] = "f32",
                 boost: Literal["off", "O1", "O2", "O3"] = "O1", shapes: Optional[Mapping[str, Sequence[int]]] = None, delegate: Optional[Names] = None, accuracy: Literal["default", "exact", "fast"] = "default",
                 threads: Optional[int] = None, runtime: Optional[Runtime] = None) -> None:
        if loss not in c.LOSSES:
            raise InvalidArgumentError(f"loss is {loss!r}, must be one of {', '.join(c.LOSSES)}")
        if accuracy not in c.ACCURACIES:
            raise InvalidArgumentError(f"accuracy is {accuracy!r}, must be 'default', 'exact' or 'fast'")
        for name, value, known in (("precision", precision, c.PRECISIONS), ("boost", boost, c.BOOSTS)):
            if value not in known:
                raise InvalidArgumentError(f"{name} is {value!r}, must be one of {', '.join(known)}")
        if runtime is not None and threads is not None:
            raise InvalidArgumentError("threads and runtime are both given; the runtime has its threads already: leave threads out")
        self._runtime = runtime or (shared_runtime() if threads is None else Runtime(threads))
        model_config = c.ModelConfig(struct_size=ctypes.sizeof(c.ModelConfig), delegates=_joined(delegate, "delegate"),
                                     accuracy=c.ACCURACIES.index(accuracy))
        named = (c.NamedDims * len(shapes or {}))()
        for entry, (name, dims) in zip(named, (shapes or {}).items()):
            entry.name, entry.rank, entry.dims = c.encode(name, "shapes"), len(dims), c.dims_of(dims)
        model_config.typical, model_config.typical_count = named, len(named)
        dynamic = loss_scale == "dynamic"
        config = c.TrainerConfig(
            struct_size=ctypes.sizeof(c.TrainerConfig), loss=c.LOSSES.index(loss), output=output,
            target_is_distribution=int(target_is_distribution), has_ignored_class=int(ignored_class is not None),
            ignored_class=ignored_class or 0, label_smoothing=label_smoothing, huber_delta=huber_delta,
            optimizer=c.encode(optimizer, "optimizer"), weight_decay=weight_decay, decay_vectors=int(decay_vectors),
            dynamic_loss_scale=int(dynamic), loss_scale=0 if dynamic else loss_scale, clip_value=clip_value, clip_norm=clip_norm,
            accumulation=accumulation, frozen=_joined(frozen, "frozen"), average_decay=average_decay, learning_rate=learning_rate,
            schedule=c.encode(schedule, "schedule"), total_steps=total_steps, safe_steps=int(safe_steps),
            model_config=ctypes.pointer(model_config), precision=c.PRECISIONS.index(precision), boost=c.BOOSTS.index(boost),
            activation_memory=None if activation_memory is None else c.encode(activation_memory, "activation_memory"))
        if class_weights is not None:
            config.class_weights, config.class_weight_count = (c_double * len(class_weights))(*class_weights), len(class_weights)
        rows = (c.ParameterGroup * len(groups))()
        for row, (pattern, factor, decay) in zip(rows, groups):
            row.pattern, row.rate_factor, row.weight_decay = c.encode(pattern, "groups"), factor, -1 if decay is None else decay
        config.groups, config.group_count = rows, len(groups)
        self._handle = self._create(os.fspath(model), config)
        self._error: Optional[BaseException] = None
        info = self.info
        self._inputs, self._outputs = tuple(map(_spec, info["inputs"])), tuple(map(_spec, info["outputs"]))
        self._target, self._states = _spec(info["target"]), tuple(map(_spec, info["states"]))

    def _create(self, path: str, config: c.TrainerConfig) -> c.Handle:
        def create(file: str) -> c.Handle:
            config.model = c.encode(file, "model")
            return c.Handle("trainer", c.library.msrt_trainer_create, self._runtime.handle.pointer, ctypes.byref(config))
        if not path.startswith("zoo:"):
            check_exists(path)
            if not path.lower().endswith(_CONVERTED):
                return create(path)
        with tempfile.TemporaryDirectory(prefix="msrt-") as folder:  # the file stays mapped when its name is gone
            converted = os.path.join(folder, "model.msrt")
            convert(path, converted)
            return create(converted)

    # ---- what there is ----

    @property
    def inputs(self) -> Tuple[TensorSpec, ...]:
        """The inputs of the model, in order."""
        return self._inputs

    @property
    def target(self) -> TensorSpec:
        """What the loss compares the output with."""
        return self._target

    @property
    def outputs(self) -> Tuple[TensorSpec, ...]:
        """The outputs of the model, in order."""
        return self._outputs

    @property
    def states(self) -> Tuple[TensorSpec, ...]:
        """Parameters, what the optimizer keeps for them, and running statistics; `role` tells which."""
        return self._states

    @property
    def info(self) -> Dict[str, Any]:
        """Model, steps so far, learning rate of the next step, inputs, outputs, states, the number of parameters."""
        info: Dict[str, Any] = json.loads(c.text_of(c.library.msrt_trainer_info_json, self._handle.pointer))
        return info

    # ---- single steps ----

    def _batch(self, inputs: Any, target: Any = None, has_target: bool = True) -> Tuple[Any, Optional[c.Handle], List[Any]]:
        """The inputs as an array of handles, the target, and everything that must live as long as they are used."""
        specs = self._inputs
        if isinstance(inputs, Mapping):
            for name in inputs:
                index_of(specs, name, "input")
            missing = [str(spec) for spec in specs if spec.name not in inputs]
            if missing:
                raise InvalidArgumentError(f"inputs are missing: {'; '.join(missing)}")
            values = [inputs[spec.name] for spec in specs]
        else:
            values = [inputs] if len(specs) == 1 and not isinstance(inputs, tuple) else list(inputs)
        if len(values) != len(specs):
            raise InvalidArgumentError(f"the model has {len(specs)} inputs, but {len(values)} values were given")
        used: List[Any] = []
        handles = [self._tensor(spec, value, "input", used) for spec, value in zip(specs, values)]
        array = (c_void_p * len(handles))(*(handle.pointer for handle in handles))
        return array, self._tensor(self._target, target, "target", used) if has_target else None, used

    def _tensor(self, spec: TensorSpec, value: Any, kind: str, used: List[Any]) -> c.Handle:
        handle, memory = tensor_of(self._runtime.handle, spec, value, kind)
        used += [handle, memory, value]
        return handle

    def step(self, inputs: Any, target: Any) -> Step:
        """Makes one step with a batch: arrays, tensors with `__dlpack__` or `Tensor` objects, which are read in place.

        inputs: the value of the input; for several a tuple in their order, or a mapping by name.
        """
        array, goal, used = self._batch(inputs, target)
        result = c.StepResult(struct_size=ctypes.sizeof(c.StepResult))
        c.call(c.library.msrt_trainer_step, self._handle.pointer, array, len(array), goal.pointer, ctypes.byref(result))  # type: ignore
        del used
        return Step(result.loss, None if result.correct < 0 else result.correct, result.learning_rate,
                    None if result.gradient_norm < 0 else result.gradient_norm, bool(result.updated), bool(result.skipped), result.steps)

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate of the steps from now on, instead of the schedule."""
        c.call(c.library.msrt_trainer_set_rate, self._handle.pointer, rate)

    def predict(self, inputs: Any) -> Dict[str, Array]:
        """The outputs of the model as it is now, by name."""
        array, _, used = self._batch(inputs, has_target=False)
        results = (c_void_p * len(self._outputs))()
        c.call(c.library.msrt_trainer_predict, self._handle.pointer, array, len(array), results, len(results))
        del used
        return {spec.name: Tensor(c.Handle.adopt("tensor", result)).numpy() for spec, result in zip(self._outputs, results)}

    # ---- data ----

    def _dataset(self, data: Data, lent: List[Any]) -> c.Handle:
        """The dataset; `lent` keeps what the library uses, and must live as long as it does."""
        if isinstance(data, Dataset):
            return data._handle
        batches = data if isinstance(data, Batches) else Batches(lambda _epoch, number: data[number], len(data))

        def read(_user: Any, epoch: int, number: int, inputs: Any, target: Any) -> int:
            def fill() -> None:
                array, goal, used = self._batch(*batches.read(epoch, number))
                lent[:] = [*lent[:1], used]  # until the next batch
                for i, pointer in enumerate(array):
                    inputs[i] = pointer
                target[0] = goal.pointer  # type: ignore[union-attr]
            return self._guard(fill)
        config = c.DatasetConfig(struct_size=ctypes.sizeof(c.DatasetConfig), read=c.ReadBatchFn(read), batch_count=batches.count,
                                 input_count=len(self._inputs))
        lent[:] = [config]
        return c.Handle("dataset", c.library.msrt_dataset_create, self._runtime.handle.pointer, ctypes.byref(config))

    def _guard(self, action: Callable[[], None]) -> int:
        try:
            action()
            return 0
        except BaseException as error:  # noqa: B902, raised again by the call that is in progress
            self._error = error
            return _FAILED

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function that calls back, and raises what a callback has raised."""
        self._error = None
        try:
            c.call(function, *arguments)
        except Exception:
            if self._error is not None:
                raise self._error from None
            raise
        if self._error is not None:
            raise self._error

    def evaluate(self, data: Data) -> Evaluation:
        """Evaluates a dataset: a `Dataset`, `Batches`, or a sequence of (inputs, target). Nothing changes."""
        lent: List[Any] = []
        dataset = self._dataset(data, lent)
        result = c.Evaluation(struct_size=ctypes.sizeof(c.Evaluation))
        self._call(c.library.msrt_trainer_evaluate, self._handle.pointer, dataset.pointer, ctypes.byref(result))
        return Evaluation(*(_known(getattr(result, name)) for name in Evaluation._fields))

    def evaluate_batch(self, inputs: Any, target: Any) -> Evaluation:
        """Evaluates one batch."""
        array, goal, used = self._batch(inputs, target)
        result = c.Evaluation(struct_size=ctypes.sizeof(c.Evaluation))
        c.call(c.library.msrt_trainer_evaluate_batch, self._handle.pointer, array, len(array), goal.pointer,  # type: ignore[union-attr]
               ctypes.byref(result))
        del used
        return Evaluation(*(_known(getattr(result, name)) for name in Evaluation._fields))

    def fit(self, data: Data, epochs: int = 1, *, eval: Optional[Data] = None, output: Optional[Path] = None, resume: bool = False,
            checkpoint_every: int = 0, keep: int = 5, early_stop: int = 0, progress: Optional[Callable[[Dict[str, Any]], None]] = None,
            epoch_done: Optional[Callable[[Epoch], None]] = None) -> List[Epoch]:
        """Trains for some epochs and returns them.

        data, eval: a `Dataset`, `Batches`, or a sequence of (inputs, target); `eval` is evaluated after each epoch.
        output: a folder for history.csv and checkpoints; None: nothing is written.
        resume: continue from the newest checkpoint in `output`, if there is one, with the bits of a run that was never stopped. The list
            has the epochs since then.
        checkpoint_every: updates; 0: a checkpoint after each epoch. `keep` of them stay, beside the best.
        early_stop: end after so many epochs without a better evaluation; 0: never.
        progress: called after each step with epoch, batch, steps, loss, samples_per_second, seconds_left and others, as a dict.
        epoch_done: called after each epoch.

        An exception of a callback stops the run after the step in progress, as `cancel` does, and is raised here.
        """
        lent: Tuple[List[Any], List[Any]] = ([], [])
        rows: List[Epoch] = []

        def report(_user: Any, given: Any) -> None:  # also without `progress`, so that Ctrl-C is seen
            def show() -> None:
                if progress is not None:
                    progress({name: getattr(given[0], name) for name, _ in c.TrainProgress._fields_})
            if self._guard(show) != 0:
                self.cancel()

        def finish(_user: Any, given: Any) -> None:
            def show() -> None:
                rows.append(_epoch_of(given[0]))
                if epoch_done is not None:
                    epoch_done(rows[-1])
            if self._guard(show) != 0:
                self.cancel()
        dataset = self._dataset(data, lent[0])
        evaluated = None if eval is None else self._dataset(eval, lent[1])
        config = c.FitConfig(struct_size=ctypes.sizeof(c.FitConfig), resume=int(resume), data=dataset.pointer,
                             eval=None if evaluated is None else evaluated.pointer, epochs=epochs,
                             output=None if output is None else c.encode(os.fspath(output), "output"), checkpoint_every=checkpoint_every,
                             keep=keep, early_stop=early_stop, progress=c.TrainProgressFn(report), epoch_done=c.TrainEpochFn(finish))
        self._call(c.library.msrt_trainer_fit, self._handle.pointer, ctypes.byref(config), None)
        return rows

    def cancel(self) -> None:
        """Stops a run after the step in progress; `fit` raises CancelledError then. May be called from any thread."""
        c.call(c.library.msrt_trainer_cancel, self._handle.pointer)

    # ---- state ----

    def get_state(self, name: str) -> Array:
        """A copy of a parameter, of what the optimizer keeps for it, or of a running statistic."""
        return Tensor(c.Handle("tensor", c.library.msrt_trainer_state_read, self._handle.pointer, c.encode(name, "name"))).numpy()

    def set_state(self, name: str, value: Any) -> None:
        """Sets a state to a copy of the value."""
        spec = self._states[index_of(self._states, name, "state")]
        tensor, used = tensor_of(self._runtime.handle, spec, value, "state")
        c.call(c.library.msrt_trainer_state_write, self._handle.pointer, c.encode(name, "name"), tensor.pointer)
        del used

    def save(self, path: Path) -> None:
        """Writes a checkpoint: all state, the number of steps and the schedule."""
        c.call(c.library.msrt_trainer_save, self._handle.pointer, c.encode(os.fspath(path), "path"))

    def restore(self, path: Path) -> None:
        """Continues from a checkpoint of the same model and optimizer, with the same bits."""
        check_exists(os.fspath(path))
        c.call(c.library.msrt_trainer_restore, self._handle.pointer, c.encode(os.fspath(path), "path"))

    def export(self, path: Path) -> None:
        """Writes the trained model for inference to a .msrt file."""
        c.call(c.library.msrt_trainer_export, self._handle.pointer, c.encode(os.fspath(path), "path"))

    def model(self) -> Model:
        """The trained model for inference. Later steps do not change it."""
        return Model(self._runtime, c.Handle("model", c.library.msrt_trainer_export_model, self._handle.pointer, None))

    def __repr__(self) -> str:
        return f"<msrt.Trainer of {', '.join(map(str, self._inputs))} -> {', '.join(map(str, self._outputs))}>"


def _spec(given: Mapping[str, Any]) -> TensorSpec:
    dims = given.get("dims")
    return TensorSpec(given["name"], given["type"], None if dims is None else tuple(dims), 0, given.get("role", ""))
