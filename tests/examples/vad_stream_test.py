#!/usr/bin/env python3
"""vad_stream, and msconvert --state that it needs, against msrun with the state passed from run to run.

usage: vad_stream_test.py BIN_DIR [MODEL.onnx]   (Python's standard library only)

The model is a small one of the shape of silero_vad's: input [1, 576], state [2, 1, 128] and sr in, output [1, 1] and stateN out, and an If
that asks for the rate. With MODEL.onnx (silero_vad.onnx of the package of that name) it is that one instead.
"""
import math
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import onnx_file as onnx  # noqa: E402
from tool_case import ToolCase  # noqa: E402

MODEL = None
FRAME, CONTEXT, CELLS = 512, 64, 128
STATE = ["--state", "state=stateN", "--shape", f"state=2x1x{CELLS}", "--shape", f"input=1x{CONTEXT + FRAME}"]


def small_model():
    """h, c = state; h' = tanh(x W + h); c' = (h + c) / 2; output = sigmoid((h' + c') v), or 0 if the rate is not 16000."""
    samples = CONTEXT + FRAME
    weights = [onnx.tensor("W", [samples, CELLS], [math.sin(0.37 * i * i) / 4 for i in range(samples * CELLS)]),
               onnx.tensor("v", [CELLS, 1], [math.cos(i) / 8 for i in range(CELLS)]),
               onnx.tensor("half", [], [0.5]), onnx.tensor("nothing", [1, 1], [0.0]),
               onnx.tensor("zero", [1], [0], onnx.INT64), onnx.tensor("one", [1], [1], onnx.INT64),
               onnx.tensor("two", [1], [2], onnx.INT64), onnx.tensor("pair", [2], [1, 1], onnx.INT64),
               onnx.tensor("rate", [], [16000], onnx.INT64)]
    known = onnx.graph([onnx.node("Reshape", ["p", "pair"], ["yes"])], [], [onnx.value("yes", [1, 1])])
    other = onnx.graph([onnx.node("Identity", ["nothing"], ["no"])], [], [onnx.value("no", [1, 1])])
    nodes = [onnx.node("Slice", ["state", "zero", "one", "zero"], ["h"]), onnx.node("Slice", ["state", "one", "two", "zero"], ["c"]),
             onnx.node("MatMul", ["input", "W"], ["xW"]), onnx.node("Add", ["xW", "h"], ["u"]), onnx.node("Tanh", ["u"], ["h2"]),
             onnx.node("Add", ["h", "c"], ["hc"]), onnx.node("Mul", ["hc", "half"], ["c2"]),
             onnx.node("Concat", ["h2", "c2"], ["stateN"], axis=0), onnx.node("Add", ["h2", "c2"], ["sum"]),
             onnx.node("MatMul", ["sum", "v"], ["score"]), onnx.node("Sigmoid", ["score"], ["p"]),
             onnx.node("Equal", ["sr", "rate"], ["known"]),
             onnx.node("If", ["known"], ["output"], then_branch=known, else_branch=other)]
    inputs = [onnx.value("input", ["n", "samples"]), onnx.value("state", [2, "n", CELLS]), onnx.value("sr", [], onnx.INT64)]
    outputs = [onnx.value("output", [1, 1]), onnx.value("stateN", [2, 1, CELLS])]
    return onnx.model(onnx.graph(nodes, inputs, outputs, weights))


def chirp(seconds, silence):
    """Sound that rises for the given seconds, then silence; the last frame is not full."""
    tone = [int(9000 * math.sin(2 * math.pi * (200 + 900 * i / 16000) * i / 16000)) for i in range(int(16000 * seconds))]
    return tone + [0] * int(16000 * silence)


class VadStream(ToolCase):
    def setUp(self):
        super().setUp()
        self.onnx = MODEL or self.write("small.onnx", small_model())

    def audio(self, name, pcm):
        return self.write(name, struct.pack(f"<{len(pcm)}h", *pcm))

    def by_hand(self, pcm):
        """The probabilities, with the state as an input and an output of the model."""
        self.must("msconvert", self.onnx, self.path("plain.msrt"))
        names = {n: self.path(n + ".npy") for n in ("input", "state", "sr")}
        onnx.write_npy(names["state"], [2, 1, CELLS], [0.0] * (2 * CELLS))
        onnx.write_npy(names["sr"], [], [16000], "<i8", "q")
        context, result = [0.0] * CONTEXT, []
        for at in range(0, len(pcm), FRAME):
            frame = [s / 32768 for s in pcm[at:at + FRAME]]
            x = context + frame + [0.0] * (FRAME - len(frame))
            context = x[-CONTEXT:]
            onnx.write_npy(names["input"], [1, len(x)], x)
            given = [a for n, f in names.items() for a in ("--input", f"{n}={f}")]
            self.must("msrun", "run", self.path("plain.msrt"), "--threads", "1", "--output-dir", self.path("out"), *given)
            result += onnx.read_npy(self.path("out/output.npy"))[1]
            os.replace(self.path("out/stateN.npy"), names["state"])
        return result

    def test_stream_equals_runs_with_explicit_state(self):
        pcm = chirp(0.15, 0.1)
        self.must("msconvert", self.onnx, self.path("vad.msrt"), *STATE)
        first, second = self.audio("first.raw", pcm), self.audio("second.raw", pcm[1000:])
        lines = self.must("vad_stream", self.path("vad.msrt"), first, second, first).splitlines()
        heard = [(float(at), float(p)) for at, p in map(str.split, lines)]
        frames = math.ceil(len(pcm) / FRAME)
        want = self.by_hand(pcm)
        self.assertEqual(len(want), frames)
        self.assertEqual([at for at, _ in heard[:frames]], [round(i * FRAME / 16000, 3) for i in range(frames)])
        for i, w in enumerate(want):
            self.assertAlmostEqual(heard[i][1], w, delta=1e-6)
        self.assertGreater(max(want) - min(want), 1e-3, "the state makes no difference, so nothing was tested")
        self.assertEqual(heard[-frames:], heard[:frames], "a stream does not begin anew")

    def test_state_is_listed_and_initially_zero(self):
        self.must("msconvert", self.onnx, self.path("vad.msrt"), *STATE)
        info = self.must("msrun", "info", self.path("vad.msrt"))
        self.assertIn(f"state    state f32[2, 1, {CELLS}]", info)
        self.assertNotIn("stateN", info)
        onnx.write_npy(self.path("sr.npy"), [], [16000], "<i8", "q")
        rate = ["--input", "sr=" + self.path("sr.npy")]
        # A benchmark writes the outputs of its first run, not of its thousandth.
        for verb in (["run"], ["bench", "--seconds", "0.05"]):
            self.must("msrun", *verb, self.path("vad.msrt"), "--threads", "1", *rate, "--output-dir", self.path(verb[0]))
        self.assertEqual(onnx.read_npy(self.path("run/output.npy")), onnx.read_npy(self.path("bench/output.npy")))

    def test_invalid_state_is_named(self):
        for arguments, message in [
                (["--state", "state"], "must look like INPUT=OUTPUT"),
                (["--state", "nothing=stateN"], "no input 'nothing'; it has input, state, sr"),
                (["--state", "state=nothing"], "no output 'nothing'; it has output, stateN"),
                (["--state", "state=stateN"], "give them with --shape state="),
                (["--state", "sr=stateN", *STATE[2:]], "element type"),
                ([*STATE, "--state", "state=stateN"], "no input 'state'"),
                ([*STATE, "--verify"], "verify it without")]:
            done = self.run_tool("msconvert", self.onnx, self.path("bad.msrt"), *arguments)
            self.assertEqual(done.returncode, 2 if "--verify" in arguments else 1, arguments)
            self.assertIn(message, done.stderr)
            self.assertFalse(os.path.exists(self.path("bad.msrt")))

    def test_program_reports_misuse(self):
        audio = self.audio("some.raw", chirp(0.05, 0))
        self.must("msconvert", self.onnx, self.path("plain.msrt"))
        self.must("msconvert", self.onnx, self.path("vad.msrt"), *STATE)
        for arguments, message in [([self.path("plain.msrt"), audio], "convert it with msconvert --state"),
                                   ([self.path("vad.msrt"), self.path("none.raw")], "cannot be opened"),
                                   ([self.path("none.msrt"), audio], "none.msrt")]:
            done = self.run_tool("vad_stream", *arguments)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    ToolCase.BIN = sys.argv[1]
    MODEL = sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1], verbosity=2)
