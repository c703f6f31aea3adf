"""Conversion, verification, the commands msconvert and msrun, and the reports of models and sessions."""
import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import msrt
import numpy as np
from models import ModelCase, affine, product, unknown_op

SITE = os.path.dirname(os.path.dirname(msrt.__file__))


class Convert(ModelCase):
    def test_options_reach_msconvert(self):
        onnx = self.write("a.onnx", product(64))
        report = msrt.convert(onnx, self.path("small.msrt"), weights="int8", shape={"x": (2, 64)})
        self.assertEqual([stored["name"] for stored in report["weights"]["stored"]], ["w"])
        self.assertEqual(msrt.load(self.path("small.msrt")).inputs[0].dims, (2, 64))
        msrt.convert(onnx, self.path("whole.msrt"), weights=None)
        self.assertLess(os.path.getsize(self.path("small.msrt")), os.path.getsize(self.path("whole.msrt")))
        msrt.convert("zoo:lenet", self.path("lenet.msrt"), batch=2, quiet=True)
        self.assertEqual(msrt.load(self.path("lenet.msrt")).inputs[0].dims, (2, 1, 28, 28))

    def test_failures_have_the_message_and_the_problems(self):
        onnx = self.write("a.onnx", unknown_op())
        with self.assertRaisesRegex(msrt.ConversionError, "acme.Frobnicate") as caught:
            msrt.convert(onnx, self.path("a.msrt"))
        self.assertEqual(caught.exception.problems[0]["op"], "acme.Frobnicate")
        self.assertIsNone(caught.exception.code)
        self.assertFalse(os.path.exists(self.path("a.msrt")))
        self.assertEqual([p["op"] for p in msrt.check(onnx)], ["acme.Frobnicate"])
        self.assertEqual(msrt.check(self.write("b.onnx", affine())), [])
        with self.assertRaises(msrt.MissingFileError):
            msrt.convert(self.path("absent.onnx"), self.path("a.msrt"))
        with self.assertRaises(msrt.ConversionError):
            msrt.convert(self.write("c.onnx", b"no model"), self.path("a.msrt"))

    def test_wrong_options_are_errors(self):
        onnx = self.write("a.onnx", affine())
        for options in ({"nonesuch": 1}, {"weights": "int3"}):
            with self.assertRaisesRegex(msrt.Error, f"--{next(iter(options))}"):
                msrt.convert(onnx, self.path("a.msrt"), **options)

    def test_verification_compares_with_files(self):
        onnx, folder = self.write("a.onnx", affine()), self.path("reference")
        os.mkdir(folder)
        x = np.array([[1, 2, 3], [-4, 5, 6]], np.float32)
        np.save(os.path.join(folder, "input_0.npy"), x)
        np.save(os.path.join(folder, "output_0.npy"), np.maximum(2 * x + 1, 0))
        self.assertTrue(msrt.verify(onnx, folder)["agrees"])
        np.save(os.path.join(folder, "output_0.npy"), np.maximum(2 * x + 1.5, 0))
        with self.assertRaisesRegex(msrt.VerificationError, "differs") as caught:
            msrt.verify(onnx, folder)
        self.assertFalse(caught.exception.report["verify"]["agrees"])
        self.assertTrue(msrt.verify(onnx, folder, tolerance=0.5)["agrees"])

    def test_verification_uses_this_interpreters_onnx_runtime(self):
        onnx = self.write("a.onnx", affine())
        try:
            import onnxruntime  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(msrt.Error, "onnxruntime|ONNX Runtime"):
                msrt.verify(onnx)
        else:
            self.assertTrue(msrt.verify(onnx)["agrees"])
            self.assertTrue(msrt.verify(onnx, verify_shape={"x": (5, 3)})["agrees"])
            self.assertTrue(msrt.verify(onnx, input={"x": np.arange(6, dtype=np.float32).reshape(2, 3)})["agrees"])
            with self.assertRaisesRegex(msrt.Error, "dim 1 must be 3, is 4"):
                msrt.verify(onnx, input={"x": np.zeros((2, 4), np.float32)})


class Reports(ModelCase):
    def setUp(self):
        super().setUp()
        self.model = self.load(product(16))
        self.x = np.ones((4, 16), np.float32)

    def test_explain_has_three_formats(self):
        plan = self.model.explain("json")
        self.assertIn(plan["nodes"][0]["delegate"], self.model.runtime.info["delegates"])
        self.assertIn("MatMul", self.model.explain())
        self.assertTrue(ElementTree.fromstring(self.model.explain("svg")).tag.endswith("svg"))
        pinned = msrt.load(self.path("model.msrt"), pins="op:MatMul=reference").explain("json")
        self.assertEqual({node["delegate"] for node in pinned["nodes"]}, {"reference"})
        alone = msrt.load(self.path("model.msrt"), delegate=["reference"], accuracy="exact", strict=True).explain("json")
        self.assertEqual({node["delegate"] for node in alone["nodes"]}, {"reference"})

    def test_profile_and_memory_are_reported(self):
        session = self.model.session(profile=True)
        session(self.x)
        profile = session.profile()
        self.assertGreaterEqual(len(profile["steps"]), 1)
        self.assertGreater(profile["total_us"], 0)
        self.assertGreaterEqual(session.memory()["total_bytes"], 0)
        session.trim()
        np.testing.assert_array_equal(session(self.x)["y"], self.model(self.x)["y"])

    def test_version_and_info_agree(self):
        self.assertRegex(msrt.version(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(msrt.__version__, msrt.version())
        self.assertEqual(self.model.info["ops"], {"MatMul": 1})
        self.assertEqual(self.model.runtime.info["version"], msrt.version())

    def test_messages_go_to_logging(self):
        with self.assertLogs("msrt", "WARNING") as logs:
            msrt.load(self.path("model.msrt"), pins="node:nonesuch=reference", threads=1)
        self.assertIn("nonesuch", logs.output[0])


class Commands(ModelCase):
    def run_command(self, name, *arguments):
        script = os.path.join(SITE, "bin", name)
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=120, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": SITE})

    def test_commands_are_the_tools(self):
        done = self.run_command("msconvert", "zoo:lenet", "lenet.msrt", "--quiet")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = self.run_command("msrun", "info", "lenet.msrt", "--json", "-")
        self.assertEqual(json.loads(done.stdout)["inputs"][0]["name"], "image")
        self.assertEqual(self.run_command("msconvert", "absent.onnx", "x.msrt").returncode, 1)
