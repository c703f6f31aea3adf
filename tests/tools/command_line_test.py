#!/usr/bin/env python3
"""msconvert's command line: files that it must not overwrite, options that are checked before the work starts, exit codes, what is printed.

usage: command_line_test.py BIN_DIR   (Python's standard library only)
"""
import json
import os
import resource
import struct
import sys
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402


def relu_model(dims=(2, 8)):
    nodes = [onnx.node("Relu", ["x"], ["a"]), onnx.node("Neg", ["a"], ["y"])]
    return onnx.model(onnx.graph(nodes, [onnx.value("x", dims)], [onnx.value("y", dims)]))


def model_with_external_weights(location):
    """y = x + w, with the four floats of w in a file beside the model."""
    entry = field_map({"location": location, "offset": "0", "length": "16"})
    weight = onnx.fields(1, [4]) + onnx.field(2, onnx.FLOAT) + onnx.field(8, "w") + entry + onnx.field(14, 1)
    nodes = [onnx.node("Add", ["x", "w"], ["y"])]
    return onnx.model(onnx.graph(nodes, [onnx.value("x", [4])], [onnx.value("y", [4])], [weight]))


def field_map(entries):
    return b"".join(onnx.field(13, onnx.field(1, k) + onnx.field(2, v)) for k, v in entries.items())


class CommandLine(ToolCase):
    def setUp(self):
        super().setUp()
        self.data = relu_model()
        self.model = self.write("model.onnx", self.data)

    def convert(self, *arguments, code=0, **options):
        done = self.run_tool("msconvert", *arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        return done

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def refuse(self, message, *arguments, code=2):
        said = self.convert(*arguments, code=code).stderr
        self.assertIn(message, said)
        return said

    def test_the_input_is_never_replaced(self):
        before = sorted(os.listdir(self.folder.name))
        self.refuse("msconvert writes .msrt and .mindir files", self.model, self.model)
        self.assertEqual(self.read("model.onnx"), self.data)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        # The same file by other names that would pass as an output.
        os.symlink(self.model, self.path("link.msrt"))
        os.symlink(self.model, self.path("link.mindir"))
        os.link(self.model, self.path("hard.msrt"))
        os.makedirs(self.path("sub"))
        for name in ("link.msrt", "link.mindir", "hard.msrt", "sub/../link.msrt"):
            said = self.refuse("is also read", self.model, self.path(name))
            self.assertIn(self.path(name), said)
            self.assertTrue(os.path.islink(self.path(name)) or name == "hard.msrt")
            self.assertEqual(self.read("model.onnx"), self.data)
            self.assertEqual(self.read(name), self.data)
        # A .msrt file is read and written.
        self.convert(self.model, self.path("m.msrt"))
        written = self.read("m.msrt")
        self.refuse("is also read", self.path("m.msrt"), self.path("m.msrt"))
        self.refuse("is also read", self.path("m.msrt"), self.path("m.msrt"), "--optimize", "none")
        self.assertEqual(self.read("m.msrt"), written)

    def test_other_files_that_are_read_are_never_replaced(self):
        self.write("weights.msrt", struct.pack("<4f", 1, 2, 3, 4))
        model = self.write("external.onnx", model_with_external_weights("weights.msrt"))
        self.refuse("is not a .msrt file", model, self.path("weights.msrt"))
        # Even one that begins like an output.
        looks = b"MSRT" + bytes(12)
        self.write("weights.msrt", looks)
        self.refuse("is also read", model, self.path("weights.msrt"), code=1)
        self.assertEqual(self.read("weights.msrt"), looks)
        self.convert(model, self.path("external.msrt"))
        self.refuse("is also read", self.model, self.path("y.msrt"), "--plugin", self.write("y.msrt", b"MSRT"))
        self.refuse("is also read", self.model, self.path("z.msrt"), "--ckpt", self.write("z.msrt", b"MSRT"))

    def test_reports_never_replace_other_files(self):
        out = self.path("m.msrt")
        self.refuse("is also read", self.model, out, "--json", self.model)
        self.refuse("this is the output", self.model, out, "--json", out)
        self.refuse("this is the output", self.model, out, "--json", os.path.join(self.folder.name, ".", "m.msrt"))
        self.refuse("is not a JSON file", self.model, out, "--json", self.write("notes.txt", b"my notes"))
        self.assertEqual(self.read("notes.txt"), b"my notes")
        self.assertEqual(self.read("model.onnx"), self.data)
        self.assertFalse(os.path.exists(out))
        self.convert(self.model, out, "--json", self.write("empty.json", b""))
        self.convert(self.model, out, "--json", self.path("empty.json"))
        json.loads(self.read("empty.json"))

    def test_a_report_goes_into_a_pipe(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.convert(self.model, self.path("m.msrt"), "--json", pipe)
        self.assertEqual(json.loads(os.read(reader, 65536)), {"problems": []})
        os.close(reader)

    def test_files_of_another_kind_are_not_replaced(self):
        for name, data in (("other.msrt", b"something else"), ("other.mindir", b"\x08\x07something else")):
            self.write(name, data)
            self.refuse("exists and is not a ." + name.split(".")[1] + " file", self.model, self.path(name))
            self.assertEqual(self.read(name), data)
        self.convert(self.model, self.write("empty.msrt", b""))
        self.convert(self.model, self.path("empty.msrt"))  # again, over the first
        os.makedirs(self.path("folder.msrt"))
        self.refuse("is a folder", self.model, self.path("folder.msrt"))

    def test_only_names_of_known_formats_are_written(self):
        for name in ("x.tflite", "x.onnx", "x", "msrt"):
            self.refuse("msconvert writes .msrt and .mindir files", self.model, self.path(name))
            self.assertFalse(os.path.exists(self.path(name)))

    def test_options_are_checked_before_the_work(self):
        out, nowhere = self.path("m.msrt"), self.path("no/such/folder/report.json")
        self.refuse("No such file or directory", self.model, out, "--json", nowhere)
        self.refuse("No such file or directory", self.model, self.path("no/such/m.msrt"))
        for arguments, message in ((["--shape", "x"], "must look like"), (["--weights", "int3"], "int3"), (["--nonsense"], "--nonsense"),
                                   (["--threads", "2"], "--target native"), (["--typical", "x=2x8"], "--target native"),
                                   (["--batch", "3"], "zoo"), (["--seed", "3"], "zoo"),
                                   (["--optimize", "none", "--disable", "cse"], "--disable"), (["--tolerance", "1e-3"], "--verify"),
                                   (["--input", "x=x.npy"], "--verify"), (["--verify-shape", "x=2x8"], "--verify"),
                                   (["--verify", "--input", "x=" + self.path("no.npy")], "no.npy"),
                                   (["--verify=" + self.path("nothing")], "no such folder"), (["--quiet", "--verbose"], "--quiet"),
                                   (["--quiet", "--progress"], "--quiet")):
            self.refuse(message, self.model, out, *arguments)
            self.assertFalse(os.path.exists(out), arguments)
        self.refuse("--check", self.model)
        self.refuse("--shape", "zoo:lenet", out, "--shape", "x=1x1x28x28")
        self.refuse("input", code=2)

    def test_exit_codes_are_in_the_help(self):
        text = self.convert("--help").stdout
        for code in range(5):
            self.assertRegex(text, rf"\n  {code}  \w")

    def test_version_names_the_build(self):
        text = self.convert("--version").stdout
        self.assertRegex(text, r"^msrt \d+\.\d+\.\d+ \([^)]+, \w+ [\d.]+[^)]*\)\n")
        self.assertRegex(text, r"processor: .+, \d+ cores?, ")
        if "onednn" in self.must("msrun", "info", "--json", "-"):
            self.assertRegex(text, r"oneDNN \d+\.\d+")

    def test_slow_nodes_are_reported(self):
        if "onednn" not in self.must("msrun", "info", "--json", "-"):
            self.skipTest("everything runs as plain loops")
        nodes = [onnx.node("Conv", ["x", "w"], ["a"]), onnx.node("Det", ["a"], ["d"], "slow"), onnx.node("Neg", ["d"], ["y"])]
        data = onnx.model(onnx.graph(nodes, [onnx.value("x", [1, 3, 128, 128])], [onnx.value("y", [1, 8])],
                                     [onnx.tensor("w", [8, 3, 1, 1], [0.1 * i for i in range(24)])]))
        model = self.write("slow.onnx", data)
        for more in ([], ["--quiet"]):
            said = self.convert(model, self.path("m.msrt"), "--json", self.path("report.json"), *more).stderr
            self.assertRegex(said, r"warning: 1 node \(Det x1\) will run as plain loops: \d+ % of the estimated time; ")
            with open(self.path("report.json")) as f:
                self.assertIn("Det", json.load(f)["warnings"][0])
        self.assertEqual(self.convert("zoo:resnet18", self.path("fast.msrt"), "--image", "64").stderr, "")

    def test_output_depends_on_quiet_and_verbose(self):
        out = self.path("m.msrt")
        usual, quiet, verbose = (self.convert(self.model, out, *more).stdout for more in ([], ["--quiet"], ["--verbose"]))
        self.assertRegex(usual, r"^[^\n]*m\.msrt: 2 nodes \(2 before \d+ passes\), [^\n]* MB of weights, \d+ ms\n$")
        self.assertEqual(quiet, "")
        self.assertRegex(verbose, r"\n?fold_constants +2 -> +2 nodes")
        self.assertIn("m.msrt: 2 nodes", verbose)

    def test_quiet_shows_the_verification(self):
        data = self.path("data")
        os.makedirs(data)
        x = [i - 7.5 for i in range(16)]
        onnx.write_npy(os.path.join(data, "input_0.npy"), (2, 8), x)
        onnx.write_npy(os.path.join(data, "output_0.npy"), (2, 8), [-max(v, 0) for v in x])
        said = self.convert(self.model, self.path("m.msrt"), "--quiet", "--verify=" + data).stdout
        self.assertIn("y f32[2, 8]: largest difference 0", said)
        self.assertEqual(len(said.splitlines()), 2)

    def test_foreign_files_are_named(self):
        with zipfile.ZipFile(self.path("net.pt"), "w") as archive:
            archive.writestr("net/data.pkl", b"\x80\x02}q\x00.")
            archive.writestr("net/version", b"3\n")
        with zipfile.ZipFile(self.path("net.keras"), "w") as archive:
            archive.writestr("config.json", "{}")
            archive.writestr("model.weights.h5", "")
        header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        self.write("net.safetensors", struct.pack("<Q", len(header)) + header + bytes(4))
        self.write("net.tflite", struct.pack("<I", 28) + b"TFL3" + bytes(64))
        self.write("net.h5", b"\x89HDF\r\n\x1a\n" + bytes(64))
        self.write("net.gguf", b"GGUF" + struct.pack("<I", 3) + bytes(64))
        self.write("old.pth", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + bytes(64))
        self.write("pointer.onnx", b"version https://git-lfs" + b"\noid sha256:0\nsize 5\n")
        self.write("net.pb", b"\x0b\x0bno message")
        os.makedirs(self.path("saved"))
        self.write("saved/saved_model.pb", b"")
        for name, what, way in (("net.pt", "PyTorch", "torch.onnx.export"), ("old.pth", "PyTorch", "torch.onnx.export"),
                                ("net.keras", "Keras", "export"), ("net.h5", "Keras", "export"),
                                ("net.tflite", "TensorFlow Lite", "tf2onnx"), ("net.safetensors", "safetensors", "export"),
                                ("net.gguf", "GGUF", "export"), ("pointer.onnx", "Git LFS", "git lfs pull"),
                                ("net.pb", "TensorFlow", "tf2onnx"), ("saved", "TensorFlow", "tf2onnx")):
            said = self.refuse(what, self.path(name), self.path("m.msrt"), code=1)
            self.assertIn(way, said)
            self.assertNotIn("damaged", said)
        self.assertIn("damaged", self.refuse("ONNX", self.write("bad.onnx", b"\x0b\x0bno message"), self.path("m.msrt"), code=1))

    def test_shapes_bind_symbols(self):
        ids, mask = onnx.value("ids", ["batch", "sequence"]), onnx.value("mask", ["batch", "sequence"])
        y = onnx.value("y", ["batch", "sequence"])
        model = self.write("open.onnx", onnx.model(onnx.graph([onnx.node("Add", ["ids", "mask"], ["y"])], [ids, mask], [y])))
        out = self.path("m.msrt")

        def shapes():
            return [i["dims"] for i in json.loads(self.must("msrun", "info", out, "--json", "-"))["inputs"]]

        for given in (["ids=2x9"], ["batch=2", "sequence=9"], ["mask=2x9", "batch=2"]):
            self.convert(model, out, *[a for g in given for a in ("--shape", g)])
            self.assertEqual(shapes(), [[2, 9], [2, 9]], given)
        self.convert(model, out, "--shape", "batch=2")
        self.assertEqual([s[0] for s in shapes()], [2, 2])
        said = self.refuse("symbol 'sequence' is 9 by ids=2x9 and 8 by mask=2x8", model, out, "--shape", "ids=2x9", "--shape", "mask=2x8", code=1)
        self.assertIn("give it one size", said)
        self.refuse("symbol 'batch' is 3 by batch=3 and 2 by ids=2x9", model, out, "--shape", "ids=2x9", "--shape", "batch=3", code=1)
        self.refuse("declares f32[batch, sequence]: rank must be 2, is 3", model, out, "--shape", "ids=2x9x1", code=1)
        said = self.refuse("no input or symbol", model, out, "--shape", "frames=2", code=1)
        self.assertIn("its inputs are ids, mask, its symbols batch, sequence", said)

    def test_out_of_memory_names_sizes(self):
        if "asan" in BIN_NAME or "tsan" in BIN_NAME:
            self.skipTest("sanitizers need address space")
        weight = onnx.tensor("w", [64, 1 << 18], [0.5] * (1 << 24))
        nodes = [onnx.node("MatMul", ["x", "w"], ["y"])]
        data = onnx.model(onnx.graph(nodes, [onnx.value("x", [2, 64])], [onnx.value("y", [2, 1 << 18])], [weight]))
        model = self.write("large.onnx", data)

        for limit in (100, 150, 200, 240):
            def little_memory():
                resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20))
            done = self.run_tool("msconvert", model, self.path("m.msrt"), preexec_fn=little_memory)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, "out of memory|no memory")
            self.assertIn("large.onnx", done.stderr)
            self.assertRegex(done.stderr, r"\d+(\.\d+)? (MB|bytes)")


if __name__ == "__main__":
    ToolCase.BIN = BIN_NAME = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
