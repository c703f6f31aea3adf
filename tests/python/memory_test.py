"""Memory: sharing without copies, ownership, and arrays that outlive their session and model."""
import gc
import sys
import weakref

import msrt
import numpy as np
from models import BFLOAT16, ModelCase, affine, identity, lists, two_in_two_out
from msrt import _tensor, _values


def address(array):
    return array.__array_interface__["data"][0]


class ZeroCopy(ModelCase):
    def test_contiguous_inputs_are_bound_in_place(self):
        x = np.ones((2, 3), np.float32)
        self.assertEqual(address(np.asarray(msrt.from_dlpack(x))), address(x))
        model, seen = self.load(affine()), []
        wrap = _values.wrap
        self.addCleanup(setattr, _values, "wrap", wrap)
        _values.wrap = lambda runtime, name, bits, dims: seen.append(address(bits)) or wrap(runtime, name, bits, dims)
        model(x)
        model(x[:, ::-1])
        self.assertEqual(seen[0], address(x))
        self.assertNotEqual(seen[1], address(x[:, ::-1]))

    def test_out_is_written_in_place(self):
        model = self.load(two_in_two_out())
        a, b, given = np.array([1, 2], np.float32), np.array([3, 4], np.float32), np.zeros(2, np.float32)
        outputs = model.run({"a": a, "b": b}, out={"sum": given})
        self.assertIs(outputs["sum"], given)
        np.testing.assert_array_equal(given, [4, 6])
        np.testing.assert_array_equal(outputs["product"], [3, 8])
        model.run({"a": a, "b": a})
        np.testing.assert_array_equal(given, [4, 6])  # no longer bound

    def test_wrong_out_is_refused(self):
        model, x = self.load(affine()), np.ones((2, 3), np.float32)
        read_only = np.zeros((2, 3), np.float32)
        read_only.flags.writeable = False
        cases = [(np.zeros((2, 3)), "float64, but the output is f32"), (np.zeros((3, 2), np.float32).T, "must be contiguous"),
                 (read_only, "writable"), (np.zeros((3, 3), np.float32), "'y'"), (x, "'y'"), ([[0.0]], "list; give an array")]
        for out, message in cases:
            with self.assertRaisesRegex(msrt.InvalidArgumentError, message):
                model.run({"x": x}, out={"y": out})
        np.testing.assert_array_equal(model(x)["y"], np.full((2, 3), 3))
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "output is a list"):
            self.load(lists()).run({"list": [], "x": np.ones(1, np.float32)}, out={"longer": x})

    def test_outputs_are_views_that_no_later_run_changes(self):
        session = self.load(affine()).session()
        kept = [session(np.full((2, 3), i, np.float32))["y"] for i in range(20)]
        for i, y in enumerate(kept):
            np.testing.assert_array_equal(y, np.full((2, 3), 2 * i + 1))
            self.assertTrue(y.flags.writeable and not y.flags.owndata)
            self.assertEqual(address(y) % 64, 0)  # the library's alignment, which NumPy does not promise
        kept[0][...] = -5
        np.testing.assert_array_equal(session(np.zeros((2, 3), np.float32))["y"], np.ones((2, 3)))

    def test_an_output_can_be_the_next_input(self):
        session, x = self.load(affine()).session(), np.zeros((1, 3), np.float32)
        for expected in (1, 3, 7, 15):
            x = session(x)["y"]
            np.testing.assert_array_equal(x, np.full((1, 3), expected))


class Lifetime(ModelCase):
    def test_arrays_outlive_session_and_model(self):
        model = self.load(affine())
        session = model.session()
        y = session(np.full((300, 3), 7, np.float32))["y"]
        tensors = session.run_tensors({"x": np.full((300, 3), 8, np.float32)})
        view = np.asarray(tensors["y"])
        del session, model, tensors
        gc.collect()
        junk = [np.zeros((300, 3), np.float32) for _ in range(50)]
        np.testing.assert_array_equal(y, np.full((300, 3), 15))
        np.testing.assert_array_equal(view, np.full((300, 3), 17))
        del junk

    def test_nothing_is_kept_alive_after_a_run(self):
        class Tracked(np.ndarray):
            pass

        session = self.load(affine()).session()
        x = np.ones((2, 3), np.float32).view(Tracked)
        out = np.ones((2, 3), np.float32).view(Tracked)
        inputs, outputs = weakref.ref(x), weakref.ref(out)
        result = session.run({"x": x}, out={"y": out})
        del x, out, result
        gc.collect()
        self.assertIsNone(inputs())
        self.assertIsNone(outputs())
        with self.assertRaises(msrt.Error):
            session.run({"x": np.ones((2, 4), np.float32)})
        gc.collect()
        self.assertEqual(_tensor._in_use, {})

    def test_memory_in_use_keeps_its_owner_alive(self):
        x = np.full(1000, 3, np.float32)
        tensor = msrt.from_dlpack(x)
        owner = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNotNone(owner())
        np.testing.assert_array_equal(tensor, np.full(1000, 3))
        del tensor
        gc.collect()
        self.assertIsNone(owner())

    def test_many_runs_leave_no_memory_behind(self):
        model = self.load(affine())
        x = np.ones((30000, 3), np.float32)  # 360 kB a run
        for _ in range(30):
            model(x)
        before = _resident_bytes()
        for i in range(300):
            y = model(x)["y"]
            if i % 50 == 0:
                gc.collect()
        del y
        self.assertLess(_resident_bytes() - before, 20e6)


def _resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class DlPack(ModelCase):
    def test_round_trip_shares_memory(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = msrt.from_dlpack(x)
        back = np.from_dlpack(tensor)
        self.assertEqual(address(back), address(x))
        self.assertEqual((tensor.dtype, tensor.shape, tensor.nbytes), ("f32", (2, 3), 24))
        self.assertEqual(repr(tensor), "msrt.Tensor(f32[2, 3])")
        del tensor, x
        gc.collect()
        np.testing.assert_array_equal(back, [[0, 1, 2], [3, 4, 5]])

    def test_results_are_exported_without_a_copy(self):
        model = self.load(affine())
        tensor = model.run_tensors({"x": np.ones((2, 3), np.float32)})["y"]
        array = np.from_dlpack(tensor)
        self.assertEqual(address(array), address(np.asarray(tensor)))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        copied = msrt.from_dlpack(_OnlyDlPack(tensor, copy=True))
        self.assertNotEqual(address(copied.numpy()), address(array))
        del tensor, model
        gc.collect()
        np.testing.assert_array_equal(array, np.full((2, 3), 3))

    def test_tensors_of_other_frameworks_can_be_inputs(self):
        model = self.load(affine())
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        for foreign in (_OnlyDlPack(x), _OnlyDlPack(x[::2]), _OnlyDlPack(x[::-1].copy().reshape(3, 4).T[:, ::1])):
            expected = np.maximum(2 * foreign.array + 1, 0)
            np.testing.assert_array_equal(model(foreign)["y"], expected)
        out = np.zeros((4, 3), np.float32)
        model.run({"x": x}, out={"y": _OnlyDlPack(out)})
        np.testing.assert_array_equal(out, 2 * x + 1)
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "out 'y' is not contiguous"):
            model.run({"x": x}, out={"y": _OnlyDlPack(np.zeros((3, 4), np.float32).T)})
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "f64"):
            model(_OnlyDlPack(x.astype(np.float64)))

    def test_tensors_on_devices_are_refused(self):
        class OnDevice:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self):
                raise AssertionError("must not be asked")

        with self.assertRaisesRegex(msrt.UnsupportedError, "input 'x' is on a device of DLPack type 2; copy it to the CPU"):
            self.load(affine())(OnDevice())

    def test_unused_capsules_are_freed(self):
        x = np.ones(1000, np.float32)
        owner, tensor = weakref.ref(x), msrt.from_dlpack(x)
        capsules = [tensor.__dlpack__() for _ in range(10)]
        del x, tensor
        gc.collect()
        self.assertIsNotNone(owner())
        del capsules
        gc.collect()
        self.assertIsNone(owner())

    def test_round_trips_leak_no_references(self):
        x = np.ones(10, np.float32)
        before = sys.getrefcount(x)
        for _ in range(100):
            np.from_dlpack(msrt.from_dlpack(_OnlyDlPack(x)))
        gc.collect()
        self.assertEqual(sys.getrefcount(x), before)

    def test_bf16_is_exported_as_bf16(self):
        tensor = self.load(identity(BFLOAT16)).run_tensors({"x": np.array([1.5], np.float32)})["y"]
        self.assertEqual((tensor.dtype, tensor.nbytes), ("bf16", 2))
        self.assertEqual(msrt.from_dlpack(_OnlyDlPack(tensor)).dtype, "bf16")
        self.assertEqual(float(np.asarray(tensor, dtype=np.float32)[0]), 1.5)

    def test_wrong_objects_are_refused(self):
        with self.assertRaisesRegex(msrt.InvalidArgumentError, "str is neither an array nor has __dlpack__"):
            msrt.from_dlpack("x")
        with self.assertRaisesRegex(msrt.UnsupportedError, "complex64"):
            msrt.from_dlpack(np.zeros(2, np.complex64))
        with self.assertRaises(BufferError):
            msrt.from_dlpack(np.zeros(2, np.float32)).__dlpack__(dl_device=(2, 0))


class _OnlyDlPack:
    """A tensor of another framework: it has only the DLPack interface."""

    def __init__(self, array, **options):
        self.array, self._options = array, options

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options, **self._options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()
