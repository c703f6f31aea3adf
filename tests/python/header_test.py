"""The ctypes declarations must match the C headers."""
import ctypes
import os
import re
import unittest

from msrt import _errors, _library, _types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRUCTS = {"msrt_runtime_config": _library.RuntimeConfig, "msrt_tensor_info": _library.TensorInfo,
           "msrt_model_config": _library.ModelConfig, "msrt_session_config": _library.SessionConfig,
           "msrt_run_config": _library.RunConfig, "msrt_named_dims": _library.NamedDims,
           "msrt_image_info": _library.ImageInfo, "msrt_image_box": _library.ImageBox, "msrt_image_output": _library.ImageOutput,
           "msrt_image_progress": _library.ImageProgress, "msrt_image_config": _library.ImageConfig,
           "msrt_dataset_config": _library.DatasetConfig, "msrt_parameter_group": _library.ParameterGroup,
           "msrt_trainer_config": _library.TrainerConfig, "msrt_step_result": _library.StepResult, "msrt_evaluation": _library.Evaluation,
           "msrt_train_progress": _library.TrainProgress, "msrt_train_epoch": _library.TrainEpoch, "msrt_fit_config": _library.FitConfig}
WIDTHS = {"uint32_t": 4, "int32_t": 4, "msrt_dtype": 4, "msrt_accuracy": 4, "msrt_state_role": 4, "msrt_executor": 4, "int64_t": 8, "size_t": 8, "double": 8,
          "msrt_loss": 4, "msrt_precision": 4, "msrt_boost": 4, "uint64_t": 8, "msrt_read_batch": 8}


def header():
    text = ""
    for name in ("msrt.h", "msrt_device.h", "msrt_plugin.h", "msrt_train.h"):
        with open(os.path.join(ROOT, "core", "abi", name), encoding="utf-8") as file:
            text += re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return text


HEADER = header()


def fields(struct):
    """(name, bytes) of each field, in order."""
    body = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", HEADER, re.S).group(1)
    found = []
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        function = re.search(r"\(\*(\w+)\)", declaration)
        name = function.group(1) if function else re.search(r"(\w+)(\[\w+\])?$", declaration).group(1)
        size = 8 if function or "*" in declaration else WIDTHS[declaration.split()[0]]
        found.append((name, size * (_library.MAX_RANK if "[MSRT_MAX_RANK]" in declaration else 1)))
    return found


class Header(unittest.TestCase):
    def test_structs_match_the_header(self):
        for name, struct in STRUCTS.items():
            ours = [(field, ctypes.sizeof(kind)) for field, kind in struct._fields_]
            theirs = fields(name)
            # struct_size lets the library have fields at the end that this package does not know.
            self.assertEqual(ours, theirs[:len(ours)] if theirs[0][0] == "struct_size" else theirs, name)

    def test_functions_match_the_header(self):
        for name, arguments in _library.CALLS.items():
            found = re.search(rf"MSRT_API msrt_status {name}\((.*?)\);", HEADER, re.S)
            self.assertIsNotNone(found, name)
            depth, count = 0, 1
            for char in found.group(1):
                depth += {"(": 1, ")": -1}.get(char, 0)
                count += char == "," and depth == 0
            self.assertEqual(len(arguments), count, name)

    def test_numbers_match_the_header(self):
        numbers = {name: int(number) for name, number in re.findall(r"MSRT_(\w+) = (\d+)", HEADER)}
        self.assertEqual({name.upper(): number for name, number in _types.NUMBERS.items()},
                         {name: number for name, number in numbers.items() if re.fullmatch(r"(B?F|I|U)\d+(E\w+)?|BOOL", name)})
        names = {cls.code: re.sub(r"(?<!^)([A-Z])", r"_\1", cls.__name__[:-len("Error")]).upper() for cls in _errors.BY_CODE.values()}
        for code, name in names.items():
            self.assertEqual(numbers[name], code)
        for name in ("INPUT", "OUTPUT", "LOG_ERROR", "LOG_WARNING", "LOG_INFO", "LOG_DEBUG", "REPORT_PLAN", "REPORT_PROFILE",
                     "REPORT_MEMORY", "REPORT_PLAN_TEXT", "REPORT_PLAN_SVG", "EXECUTOR_AUTO", "EXECUTOR_STREAM", "EXECUTOR_TILES",
                     "EXECUTOR_HALO", "IMAGE_REPORT_JSON", "IMAGE_REPORT_SVG"):
            self.assertEqual(getattr(_library, name), numbers[name], name)
        for number, name in enumerate(_library.LOSSES):
            self.assertEqual(number, numbers["LOSS_" + name.upper()], name)
        self.assertEqual(_library.ABI_VERSION, int(re.search(r"MSRT_ABI_VERSION (\d+)u", HEADER).group(1)))
        self.assertEqual(_library.MAX_RANK, int(re.search(r"MSRT_MAX_RANK (\d+)", HEADER).group(1)))
