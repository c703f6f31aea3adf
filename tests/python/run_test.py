"""Runs: results against NumPy, shapes, types, lists, state, and the messages of wrong calls."""
import os

import msrt
import numpy as np
from models import (BFLOAT16, BOOL, FLOAT4E2M1, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, INT4, INT64, ModelCase, affine, counter, counting_loop,
                    identity, lists, product, two_in_two_out)


class Runs(ModelCase):
    def test_results_match_numpy(self):
        model = self.load(product(37))
        x = np.random.default_rng(1).standard_normal((5, 37), dtype=np.float32)
        w = np.repeat((np.arange(37) % 7 - 3).astype(np.float32)[:, None], 37, axis=1)
        outputs = model.run({"x": x})
        self.assertEqual(list(outputs), ["y"])
        self.assertEqual(outputs["y"].dtype, np.float32)
        np.testing.assert_allclose(outputs["y"], x @ w, rtol=1e-5, atol=1e-5)

    def test_file_path_bytes_and_onnx_load_alike(self):
        path = self.converted(affine())
        x = np.array([[-1, 0, 2]], np.float32)
        with open(path, "rb") as file:
            data = file.read()
        sources = [path, os.fsencode(path).decode(), data, bytearray(data), memoryview(data), self.path("model.onnx")]
        for source in sources:
            np.testing.assert_array_equal(msrt.load(source).run({"x": x})["y"], [[0, 1, 5]])
        class Path:
            def __fspath__(self):
                return path
        np.testing.assert_array_equal(msrt.load(Path()).run({"x": x})["y"], [[0, 1, 5]])

    def test_calls_take_inputs_by_position_and_by_name(self):
        model = self.load(two_in_two_out())
        a, b = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
        for outputs in (model(a, b), model(a, b=b), model(b=b, a=a), model.session()(a, b)):
            np.testing.assert_array_equal(outputs["sum"], [4, 6])
            np.testing.assert_array_equal(outputs["product"], [3, 8])
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "2 inputs, but 3 values"):
            model(a, b, a)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "'a' is given by position and by name"):
            model(a, a=a, b=b)

    def test_new_shapes_work_without_loading_again(self):
        model = self.load(affine(), shapes={"x": (4, 3)})
        session = model.session()
        for n in (1, 7, 0, 1000, 7):
            x = np.full((n, 3), n, np.float32)
            np.testing.assert_array_equal(session.run({"x": x})["y"], 2 * x + 1)

    def test_plain_numbers_and_lists_become_tensors(self):
        np.testing.assert_array_equal(self.load(affine())([[1, 2, 3]])["y"], [[3, 5, 7]])
        self.assertEqual(self.load(counting_loop())(5)["end"], 5)
        self.assertEqual(self.load(counting_loop())(np.int64(6))["end"].shape, ())
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "input 'count' takes i64, which cannot hold"):
            self.load(counting_loop())(2.5)

    def test_specs_name_open_dims(self):
        model = self.load(affine())
        self.assertEqual(model.inputs, (msrt.TensorSpec("x", "f32", ("n", 3), 0),))
        self.assertEqual(str(model.inputs[0]), "x: f32[n, 3]")
        self.assertEqual(model.outputs[0].numpy_dtype, np.float32)
        self.assertEqual(model.states, ())
        self.assertEqual(model.info["entries"][0]["inputs"], [{"name": "x", "type": "f32", "dims": ["n", 3]}])
        self.assertEqual(repr(model), "<msrt.Model x: f32[n, 3] -> y: f32[n, 3]>")

    def test_types_survive_a_run(self):
        values = {INT64: np.array([1, -2**62], np.int64), FLOAT16: np.array([0.5, 65504], np.float16), BOOL: np.array([True, False])}
        for kind, x in values.items():
            y = self.load(identity(kind))(x)["y"]
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)

    def test_bf16_takes_and_returns_float32_without_ml_dtypes(self):
        model = self.load(identity(BFLOAT16))
        x = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -3.3e38, np.inf, np.nan, 1e-40], np.float32)  # ties go to even
        y = model(x)["y"].astype(np.float32)
        np.testing.assert_array_equal(y[:2], [1, 1])
        self.assertEqual(y[2], np.float32(1 + 2**-6))
        np.testing.assert_allclose(y[3], x[3], rtol=2**-8)
        self.assertTrue(np.isinf(y[4]) and np.isnan(y[5]) and 0 < y[6] < 2e-40)

    def test_four_bit_integers_are_bytes_in_numpy(self):
        model = self.load(identity(INT4))
        for count in (0, 1, 4, 7):
            x = (np.arange(count) % 16 - 8).astype(np.int8)
            y = model(x)["y"]
            self.assertEqual(y.dtype, np.int8)
            np.testing.assert_array_equal(y, x)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "from -8 to 7"):
            model(np.array([8], np.int8))

    def test_ml_dtypes_are_accepted_and_returned(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        values = [0, 1, -2, 1.5, 3]
        kinds = {BFLOAT16: ml_dtypes.bfloat16, FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, FLOAT8E5M2: ml_dtypes.float8_e5m2,
                 FLOAT4E2M1: ml_dtypes.float4_e2m1fn}
        for kind, dtype in kinds.items():
            y = self.load(identity(kind))(np.array(values, dtype))["y"]
            self.assertEqual(y.dtype, np.dtype(dtype))
            self.assertEqual(y.astype(float).tolist(), values)
        y = self.load(identity(INT4))(np.array([-8, 7, -1], ml_dtypes.int4))["y"]
        self.assertEqual((y.dtype, y.tolist()), (np.dtype(np.int8), [-8, 7, -1]))

    def test_lists_and_optionals_are_converted(self):
        model = self.load(lists())
        self.assertEqual(str(model.inputs[0]), "list: list(f32[n])")
        a, b, x = (np.array(v, np.float32) for v in ([1, 2], [3], [9]))
        outputs = model.run({"list": [a, b], "x": x})
        np.testing.assert_array_equal(outputs["joined"], [1, 2, 3])
        self.assertEqual([e.tolist() for e in outputs["longer"]], [[1, 2], [3], [9]])
        self.assertEqual([e.tolist() for e in model.run({"list": a, "x": x})["longer"]], [[1, 2], [9]])  # an optional that is there
        again = model.run({"list": outputs["longer"], "x": x})
        self.assertEqual(len(again["longer"]), 4)
        self.assertFalse(outputs["longer"][0].flags.writeable)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "element 1 of input 'list' takes f32, but the array is float64"):
            model.run({"list": [a, b.astype(float)], "x": x})

    def test_other_layouts_are_copied(self):
        model = self.load(affine())
        x = np.arange(24, dtype=np.float32).reshape(3, 8)
        for other in (x[:, ::-1].T[:, :3], np.asfortranarray(x[:, :3]), x[:, :3].astype(">f4"), _unaligned(x[:, :3])):
            np.testing.assert_array_equal(model(other)["y"], 2 * other + 1)
        read_only = x[:, :3].copy()
        read_only.flags.writeable = False
        np.testing.assert_array_equal(model(read_only)["y"], 2 * read_only + 1)

    def test_explicit_runtime_is_shared(self):
        runtime = msrt.Runtime(threads=1)
        path = self.converted(affine())
        models = [msrt.load(path, runtime=runtime) for _ in range(2)]
        self.assertIs(models[0].runtime, models[1].runtime)
        self.assertEqual(runtime.info["threads"], 1)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "leave threads out"):
            msrt.load(path, runtime=runtime, threads=2)


def _unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    memory[...] = x
    return memory


class State(ModelCase):
    def setUp(self):
        super().setUp()
        self.model = self.load(counter(), {"state": {"total": "total_out"}})
        self.name = self.model.states[0].name
        self.one = np.ones(2, np.float32)

    def test_sessions_keep_state(self):
        session, other = self.model.session(), self.model.session()
        for step in (1, 2, 3):
            np.testing.assert_array_equal(session(self.one)["y"], [-step, -step])
        np.testing.assert_array_equal(other(self.one)["y"], [-1, -1])
        np.testing.assert_array_equal(session.get_state(self.name), [3, 3])
        session.set_state(self.name, np.array([10, 20], np.float32))
        clone = session.clone()
        np.testing.assert_array_equal(session(self.one)["y"], [-11, -21])
        np.testing.assert_array_equal(clone(self.one)["y"], [-11, -21])
        session.copy_state(clone)
        np.testing.assert_array_equal(session.get_state(self.name), [11, 21])
        session.reset_state()
        np.testing.assert_array_equal(session.get_state(self.name), [0, 0])
        clone.reset_state(self.name)
        np.testing.assert_array_equal(clone(self.one)["y"], [-1, -1])

    def test_states_have_roles(self):
        self.assertEqual(self.model.states[0].role, "cache")
        self.assertEqual(self.model.inputs[0].role, "")
        self.assertEqual(self.model.info["states"][0]["role"], "cache")

    def test_sessions_that_share_state_have_their_own_caches(self):
        session = self.model.session()
        other = self.model.session(share_state=session)
        session(self.one)
        np.testing.assert_array_equal(other(self.one)["y"], [-1, -1])

    def test_get_state_returns_a_copy(self):
        session = self.model.session()
        before = session.get_state(self.name)
        session(self.one)
        np.testing.assert_array_equal(before, [0, 0])

    def test_a_model_with_state_needs_a_session(self):
        with self.assertRaisesRegex(msrt.InvalidArgumentError, r"keeps state .* session = model.session\(\)"):
            self.model(self.one)

    def test_unknown_state_lists_the_known_ones(self):
        with self.assertRaisesRegex(msrt.NotFoundError, f"no state 'h'; the model has '{self.name}'"):
            self.model.session().get_state("h")


class Errors(ModelCase):
    def test_wrong_names_list_the_known_ones(self):
        model = self.load(two_in_two_out())
        x = np.ones(2, np.float32)
        with self.assertRaisesRegex(msrt.NotFoundError, "no input 'c'; the model has 'a', 'b'"):
            model.run({"a": x, "c": x})
        with self.assertRaisesRegex(msrt.InvalidArgumentError, r"inputs are missing: b: f32\[n\]"):
            model.run({"a": x})
        with self.assertRaisesRegex(msrt.NotFoundError, "no output 'y'; the model has 'sum', 'product'"):
            model.run({"a": x, "b": x}, out={"y": x})

    def test_wrong_dtype_suggests_a_cast(self):
        expected = r"input 'x' takes f32, but the array is float64; cast it with .astype\('float32'\)"
        with self.assertRaisesRegex(msrt.InvalidArgumentError, expected):
            self.load(affine())(np.ones((1, 3)))

    def test_wrong_dims_name_the_input(self):
        with self.assertRaisesRegex(msrt.InvalidArgumentError, r"input 0 'x'") as caught:
            self.load(affine())(np.ones((1, 4), np.float32))
        self.assertEqual((caught.exception.code, caught.exception.function), (1, "msrt_session_bind"))
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(msrt.Error):
            self.load(two_in_two_out())(np.ones(2, np.float32), np.ones(3, np.float32))

    def test_an_error_leaves_the_session_usable(self):
        session = self.load(affine()).session()
        with self.assertRaises(msrt.Error):
            session(np.ones((1, 4), np.float32))
        np.testing.assert_array_equal(session(np.ones((1, 3), np.float32))["y"], [[3, 3, 3]])

    def test_loading_other_files_fails(self):
        for absent in ("absent.msrt", "absent.onnx"):
            with self.assertRaisesRegex(msrt.MissingFileError, absent) as caught:
                msrt.load(self.path(absent))
            self.assertIsInstance(caught.exception, FileNotFoundError)
            self.assertEqual(caught.exception.code, 4)
        with self.assertRaises(msrt.IoError):
            msrt.load(self.folder)
        with self.assertRaises(msrt.InvalidModelError):
            msrt.load(b"not a model")

    def test_wrong_options_are_refused(self):
        path = self.converted(affine())
        with self.assertRaisesRegex(msrt.Error, "nonesuch"):
            msrt.load(path, delegate="nonesuch")
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "zero character"):
            msrt.load(path, delegate="reference\0")
        with self.assertRaisesRegex(msrt.Error, "'z'"):
            msrt.load(path, shapes={"z": (1, 3)})
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "accuracy is 'high'"):
            msrt.load(path, accuracy="high")
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "format is 'png'"):
            msrt.load(path).explain("png")
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "timeout is 0"):
            msrt.load(path).run({"x": np.ones((1, 3), np.float32)}, timeout=0)
        with self.assertRaisesRegex(msrt.Error, "config.profile"):
            msrt.load(path).session().profile()

    def test_memory_cap_is_enforced(self):
        session = self.load(affine()).session(memory_cap_bytes=64)
        with self.assertRaises(msrt.LimitExceededError):
            session(np.ones((1000, 3), np.float32))

    def test_every_status_has_a_class(self):
        classes = (msrt.InvalidArgumentError, msrt.InvalidModelError, msrt.UnsupportedError, msrt.NotFoundError, msrt.OutOfMemoryError,
                   msrt.LimitExceededError, msrt.CancelledError, msrt.DeadlineExceededError, msrt.IoError, msrt.DelegateError,
                   msrt.InternalError)
        for code, cls in enumerate(classes, 1):
            self.assertEqual(cls.code, code)
            self.assertTrue(issubclass(cls, msrt.Error))
            self.assertEqual(str(cls("the text")), "the text")
