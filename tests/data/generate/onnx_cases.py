"""Models of one node in the layout of ONNX's own backend tests: a folder a case with model.onnx and test_data_set_0, which onnx_suite runs.
Expected values come from ONNX Runtime unless they are given."""
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)


class OnnxCases:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        if self.root.exists():
            shutil.rmtree(self.root)

    def add(self, name, op, opset, inputs, attrs=None, *, constants=(), outputs=1, domain="", domain_opset=1, expected=None):
        """inputs: arrays or None; those whose index is in `constants` are initializers. outputs: how many, or their names, some of them
        empty. expected: for what ONNX Runtime lacks."""
        names = ["" if a is None else f"i{i}" for i, a in enumerate(inputs)]
        results = [f"o{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
        node = helper.make_node(op, names, results, domain=domain, **(attrs or {}))
        given = {n: a for i, (n, a) in enumerate(zip(names, inputs)) if n and i not in constants}
        fixed = [numpy_helper.from_array(inputs[i], names[i]) for i in constants]
        declared = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
        opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, domain_opset)] if domain else [])
        wanted = [o for o in results if o]

        def model(types):
            values = [helper.make_tensor_value_info(o, t, None) for o, t in zip(wanted, types)]
            return helper.make_model(helper.make_graph([node], name, declared, values, fixed), opset_imports=opsets, ir_version=8)

        if expected is None:
            untyped = model([TensorProto.FLOAT] * len(wanted))
            del untyped.graph.output[:]
            untyped.graph.output.extend(onnx.ValueInfoProto(name=o) for o in wanted)
            expected = onnxruntime.InferenceSession(untyped.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
        folder = self.root / f"test_{name}"
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model([helper.np_dtype_to_tensor_dtype(e.dtype) for e in expected]).SerializeToString())
        for kind, arrays in (("input", given.values()), ("output", expected)):
            for i, a in enumerate(arrays):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.array(a, order="C"), f"{kind}_{i}").SerializeToString())

    def report(self):
        folders = sorted(self.root.iterdir())
        print(f"{self.root}: {len(folders)} cases, {sum(f.stat().st_size for f in self.root.rglob('*') if f.is_file())} bytes")
