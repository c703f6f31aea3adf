"""Training: steps against NumPy, whole runs, checkpoints, export, and the messages of wrong calls."""
import os
import threading

import msrt
import numpy as np
from models import ModelCase
from onnx_file import graph, model, node, tensor, value

FEATURES, HIDDEN, CLASSES, SAMPLES = 4, 6, 3, 12
RATE, MOMENTUM = 0.1, 0.9


def weights():
    random = np.random.default_rng(5)
    return {"w1": random.standard_normal((FEATURES, HIDDEN)).astype(np.float32), "b1": np.full(HIDDEN, 0.1, np.float32),
            "w2": random.standard_normal((HIDDEN, CLASSES)).astype(np.float32), "b2": np.zeros(CLASSES, np.float32)}


def perceptron(name="perceptron"):
    """y = softmax(relu(x w1 + b1) w2 + b2)."""
    return model(graph([node("MatMul", ["x", "w1"], ["m1"]), node("Add", ["m1", "b1"], ["a1"]), node("Relu", ["a1"], ["h"]),
                        node("MatMul", ["h", "w2"], ["m2"]), node("Add", ["m2", "b2"], ["s"]), node("Softmax", ["s"], ["y"], axis=1)],
                       [value("x", ["n", FEATURES])], [value("y", ["n", CLASSES])],
                       [tensor(key, list(w.shape), w.ravel().tolist()) for key, w in weights().items()]))


def batch(number):
    random = np.random.default_rng(100 + number)
    labels = random.integers(0, CLASSES, SAMPLES)
    centers = np.array([[2, 0, 0, 1], [0, 2, 0, -1], [0, 0, 2, 0]], np.float32)
    return (centers[labels] + 0.3 * random.standard_normal((SAMPLES, FEATURES))).astype(np.float32), labels


class NumpyTrainer:
    """The same network in double, with PyTorch's momentum."""

    def __init__(self):
        self.p = {name: w.astype(np.float64) for name, w in weights().items()}
        self.v = {name: np.zeros_like(w) for name, w in self.p.items()}

    def step(self, x, labels):
        p = self.p
        a = x.astype(np.float64) @ p["w1"] + p["b1"]
        h = np.maximum(a, 0)
        s = h @ p["w2"] + p["b2"]
        e = np.exp(s - s.max(axis=1, keepdims=True))
        y = e / e.sum(axis=1, keepdims=True)
        loss = -np.log(y[np.arange(len(labels)), labels]).mean()
        ds = (y - np.eye(CLASSES)[labels]) / len(labels)
        da = (ds @ p["w2"].T) * (a > 0)
        gradients = {"w1": x.T @ da, "b1": da.sum(axis=0), "w2": h.T @ ds, "b2": ds.sum(axis=0)}
        for name, g in gradients.items():
            self.v[name] = MOMENTUM * self.v[name] + g
            p[name] = p[name] - RATE * self.v[name]
        return loss, int((y.argmax(axis=1) == labels).sum())


class Train(ModelCase):
    def setUp(self):
        super().setUp()
        self.model = self.converted(perceptron())

    def trainer(self, **options):
        return msrt.Trainer(self.model, optimizer=f"momentum:{MOMENTUM}", **{"learning_rate": RATE, **options})

    def test_steps_have_the_losses_and_parameters_of_numpy(self):
        trainer, expected = self.trainer(), NumpyTrainer()
        for i in range(8):
            x, labels = batch(i)
            loss, correct = expected.step(x, labels)
            step = trainer.step(x, labels)
            np.testing.assert_allclose(step.loss, loss, rtol=1e-4)
            self.assertEqual((step.correct, step.steps, step.updated), (correct, i + 1, True))
        self.assertLess(step.loss, 0.7)
        for name, w in expected.p.items():
            np.testing.assert_allclose(trainer.get_state(name), w, rtol=1e-3, atol=1e-5)

    def test_predictions_are_those_of_the_exported_model(self):
        trainer = self.trainer()
        for i in range(5):
            trainer.step({"x": batch(i)[0]}, batch(i)[1])
        predicted = trainer.predict(batch(9)[0])["y"]
        trained = trainer.model()
        trainer.export(self.path("trained.msrt"))
        trainer.step(*batch(0))
        for other in (trained, msrt.load(self.path("trained.msrt"))):
            np.testing.assert_allclose(other(batch(9)[0])["y"], predicted, rtol=1e-5, atol=1e-6)
        self.assertFalse(np.allclose(trainer.predict(batch(9)[0])["y"], predicted, rtol=1e-5))

    def test_boost_lists_its_changes(self):
        self.assertEqual(self.trainer().info["changes"], [])
        trainer = self.trainer(boost="O2", activation_memory="100%", shapes={"x": (SAMPLES, FEATURES)})
        self.assertEqual([c["name"] for c in trainer.info["changes"]], ["bf16 products", "bf16 activations", "recomputation"])
        self.assertGreater(trainer.info["activations"]["kept_bytes"], 0)
        losses = [trainer.step(*batch(i)).loss for i in range(8)]
        self.assertLess(losses[-1], losses[0])
        mixed = self.trainer(precision="mixed")
        self.assertEqual(len(mixed.info["changes"]), 2)
        for options, message in (({"boost": "O4"}, "boost is 'O4'"), ({"precision": "bf16"}, "precision is 'bf16'"),
                                 ({"activation_memory": "40"}, "at least"), ({"activation_memory": "40%"}, "input 'x'")):
            with self.assertRaisesRegex(msrt.Error, message):
                self.trainer(**options, **({"shapes": {"x": (SAMPLES, FEATURES)}} if message == "at least" else {}))

    def test_fit_has_the_bits_of_steps(self):
        data = [batch(i) for i in range(4)]
        fitted, stepped = self.trainer(), self.trainer()
        seen, epochs = [], []
        rows = fitted.fit(data, 2, eval=data, progress=seen.append, epoch_done=epochs.append)
        for inputs, target in data * 2:
            stepped.step(inputs, target)
        np.testing.assert_array_equal(fitted.get_state("w1"), stepped.get_state("w1"))
        self.assertEqual([row.epoch for row in rows], [1, 2])
        self.assertEqual(rows, epochs)
        self.assertEqual([(p["epoch"], p["batch"]) for p in seen], [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3), (1, 4)])
        evaluation = fitted.evaluate(data)
        self.assertEqual((evaluation.count, evaluation.accuracy, evaluation.loss), (4 * SAMPLES, rows[-1].eval_accuracy, rows[-1].eval_loss))
        self.assertIsNone(rows[-1].eval_iou)

    def test_arrays_are_batches(self):
        x, y = (np.concatenate(part) for part in zip(*(batch(i) for i in range(8))))
        trainer = self.trainer()
        rows = trainer.fit(msrt.Batches.of_arrays(x, y, 10, shuffle=True), 12)
        self.assertEqual(rows[-1].steps, 12 * 10)
        self.assertGreaterEqual(trainer.evaluate(msrt.Batches.of_arrays(x, y, 40)).accuracy, 0.97)

    def test_stopped_run_resumes_with_the_same_bits(self):
        data = msrt.Batches(lambda epoch, number: batch(10 * epoch + number), 5)
        whole = self.trainer(schedule="cosine")
        whole.fit(data, 3)

        def stop(progress):
            if progress["steps"] == 7:
                raise KeyError("enough")
        with self.assertRaises(KeyError):
            self.trainer(schedule="cosine").fit(data, 3, output=self.path("run"), progress=stop)
        again = self.trainer(schedule="cosine")
        rows = again.fit(data, 3, output=self.path("run"), resume=True)
        self.assertEqual([row.epoch for row in rows], [2, 3])
        for name in weights():
            np.testing.assert_array_equal(again.get_state(name), whole.get_state(name))
        self.assertTrue(os.path.exists(self.path("run/history.csv")))

    def test_checkpoints_restore_the_same_bits(self):
        trainer, other = self.trainer(), self.trainer()
        trainer.step(*batch(0))
        trainer.save(self.path("one.ckpt"))
        trainer.step(*batch(1))
        other.restore(self.path("one.ckpt"))
        self.assertEqual(other.step(*batch(1)).steps, 2)
        np.testing.assert_array_equal(trainer.get_state("w2"), other.get_state("w2"))
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "with this optimizer"):
            msrt.Trainer(self.model, optimizer="adam").restore(self.path("one.ckpt"))
        with self.assertRaises(msrt.MissingFileError):
            other.restore(self.path("none.ckpt"))

    def test_states_are_read_and_written(self):
        trainer = self.trainer(frozen="w1,b1")
        self.assertEqual([spec.name for spec in trainer.states if spec.role == "parameter"], ["w2", "b2"])
        trainer.set_state("b2", np.array([1, 2, 3], np.float32))
        np.testing.assert_array_equal(trainer.get_state("b2"), [1, 2, 3])
        with self.assertRaisesRegex(msrt.NotFoundError, "no state 'w1'"):
            trainer.set_state("w1", weights()["w1"])
        with self.assertRaises(msrt.InvalidArgumentError):
            trainer.set_state("b2", np.zeros(4, np.float32))

    def test_cancel_ends_a_run_from_another_thread(self):
        trainer = self.trainer()
        started = threading.Event()

        def cancel():
            started.wait()
            trainer.cancel()
        thread = threading.Thread(target=cancel)
        thread.start()
        with self.assertRaises(msrt.CancelledError):
            trainer.fit([batch(0)], 10**7, progress=lambda _progress: started.set())
        thread.join()
        self.assertGreater(trainer.step(*batch(0)).steps, 1)

    def test_folder_of_arrays_is_a_dataset(self):
        os.mkdir(self.path("data"))
        np.save(self.path("data/images.npy"), np.random.default_rng(1).integers(0, 255, (10, 28, 28), np.uint8))
        np.save(self.path("data/labels.npy"), np.arange(10, dtype=np.uint8) % 10)
        data = msrt.Dataset(self.path("data"), batch=4, shuffle=True, channels=1, normalize="scale=1/255")
        self.assertEqual((data.info["batches"], data.info["samples"], data.info["dims"]), (3, 10, [1, 28, 28]))
        trainer = msrt.Trainer("zoo:lenet", learning_rate=0.01)
        rows = trainer.fit(data, 2, eval=msrt.Dataset(self.path("data"), channels=1, normalize="scale=1/255", classes_of=data))
        self.assertEqual(rows[-1].steps, 6)
        self.assertEqual(trainer.evaluate(data).count, 10)
        with self.assertRaisesRegex(msrt.NotFoundError, "no such folder"):
            msrt.Dataset(self.path("nothing"))

    def test_errors_are_exceptions(self):
        trainer = self.trainer(safe_steps=True)
        x, labels = batch(0)
        before = trainer.get_state("w1")
        for message, inputs, target in [("input 'x' takes f32, but the array is float64", x.astype(np.float64), labels),
                                        ("'x'", x[:, :2], labels), ("target 'target' takes i64", x, x),
                                        ("no input 'z'", {"z": x}, labels), ("inputs are missing: x", {}, labels),
                                        ("input 'x'", x * np.nan, labels)]:
            with self.assertRaisesRegex((msrt.InvalidArgumentError, msrt.NotFoundError), message):
                trainer.step(inputs, target)
        np.testing.assert_array_equal(trainer.get_state("w1"), before)
        for message, options in [("loss is 'hinge'", {"loss": "hinge"}), ("optimizer", {"optimizer": "sdg"}),
                                 (r"'v\?'", {"frozen": "v?"})]:
            with self.assertRaisesRegex(msrt.InvalidArgumentError, message):
                msrt.Trainer(self.model, **options)
        with self.assertRaises(msrt.MissingFileError):
            msrt.Trainer(self.path("none.msrt"))
        with self.assertRaises(ZeroDivisionError):
            trainer.fit(msrt.Batches(lambda _epoch, _number: 1 // 0, 2))
