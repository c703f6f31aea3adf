"""Cases of Fourier transforms and the tables that go with them. Run from the root of the repository:
    python tests/data/generate/fourier.py tests/data/ops/signal.cases
"""
import sys

import numpy as np
import torch

from cases import BF16, Cases, Dtype, NAMES

RNG = np.random.default_rng(20240913)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
RTOL = {F32: 1e-6, F64: 1e-12, F16: 1e-3, BF16: 1e-2}


def close(dtype, expected):
    """Sums of many terms: the error is relative to the largest element."""
    most = float(np.abs(expected).max()) if expected.size else 0.0
    return {"rtol": RTOL[dtype], "atol": RTOL[dtype] * most}


def as_complex(x):
    x = x.astype(F64)
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def as_parts(z):
    return np.stack([z.real, z.imag], -1)


def dft(cases):
    def one(shape, axis=None, length=None, inverse=0, onesided=0, dtype=F32, form="attribute", name=""):
        x = RNG.normal(size=shape).astype(dtype)
        at = (-2 if axis is None else axis) % len(shape)
        z = as_complex(x)
        if inverse and onesided:
            out = np.fft.irfft(z, length, at)[..., None]
        elif inverse:
            out = as_parts(np.fft.ifft(z, length, at))
        elif onesided:
            out = as_parts(np.fft.rfft(z, length, at))
        else:
            out = as_parts(np.fft.fft(z, length, at))
        attrs = {n: v for n, v in (("inverse", inverse), ("onesided", onesided)) if v}
        inputs = [x]
        if form == "attribute":
            attrs.update({n: v for n, v in (("axis", axis), ("dft_length", length)) if v is not None})
        else:
            inputs.append(None if length is None else np.array(length, np.int64))
            inputs.append(None if axis is None else np.array(axis, np.int64))
        cases.add("DFT", inputs, [out.astype(dtype)], attrs, name=name, oracle="numpy.fft", **close(dtype, out))

    for dtype in (F32, F64, F16, BF16):
        one((2, 10, 1), dtype=dtype, name=f"real_{dtype.name}")
        one((2, 10, 2), inverse=1, dtype=dtype, name=f"inverse_{dtype.name}")
    for n in (1, 2, 3, 8, 12, 15, 31, 64):
        one((2, n, 2), name=f"length_{n}")
    one((3, 9, 1), onesided=1, name="onesided_odd")
    one((3, 8, 1), onesided=1, name="onesided_even")
    one((3, 5, 2), inverse=1, onesided=1, name="inverse_onesided")
    one((3, 5, 2), inverse=1, onesided=1, length=9, name="inverse_onesided_odd")
    one((3, 5, 2), inverse=1, onesided=1, length=12, name="inverse_onesided_padded")
    one((3, 8, 2), inverse=1, onesided=1, length=6, name="inverse_onesided_cut")
    one((2, 6, 5, 2), axis=1, name="axis1")
    one((4, 6, 5, 1), axis=0, onesided=1, name="axis0")
    one((4, 6, 5, 2), axis=-3, inverse=1, name="negative_axis")
    one((2, 6, 1), length=10, name="padded")
    one((2, 10, 2), length=6, name="cut")
    one((2, 10, 1), length=7, onesided=1, form="input", name="dynamic_length")
    one((2, 6, 3, 2), axis=1, length=5, form="input", name="dynamic_axis")
    one((9, 2), name="rank2")
    one((2, 2, 1, 3, 4, 2), axis=4, name="rank6")
    cases.add("DFT", [np.zeros((0, 4, 1), F32)], [np.zeros((0, 4, 2), F32)], name="no_batch", oracle="by definition")


def stft(cases):
    def one(shape, step, length=None, window=None, onesided=None, dtype=F32, form="attribute", name=""):
        x = RNG.normal(size=shape).astype(dtype)
        weights = None if window is None else RNG.uniform(0.1, 1, window).astype(dtype)
        n = length or window or shape[1]
        z = as_complex(x)
        starts = range(0, shape[1] - n + 1, step)
        frames = np.stack([z[:, s:s + n] for s in starts], 1) * (1 if weights is None else weights.astype(F64))
        sides = 1 if onesided is None else onesided
        out = as_parts(np.fft.rfft(frames) if sides else np.fft.fft(frames))
        attrs = {} if onesided is None else {"onesided": onesided}
        inputs = [x, None, weights]
        if form == "attribute":
            attrs.update({k: v for k, v in (("frame_step", step), ("frame_length", length)) if v is not None})
        else:
            inputs = [x, np.array(step, np.int64), weights, None if length is None else np.array(length, np.int64)]
        while inputs[-1] is None:
            inputs.pop()
        cases.add("STFT", inputs, [out.astype(dtype)], attrs, name=name, oracle="numpy.fft of each frame", **close(dtype, out))

    for dtype in (F32, F64, F16, BF16):
        one((2, 30, 1), 4, 8, 8, dtype=dtype, name=dtype.name)
    one((2, 31, 1), 5, 7, name="no_window")
    one((2, 31, 1), 5, None, 9, name="length_of_window")
    one((2, 31, 1), 5, None, 9, 0, name="both_sides")
    one((2, 31, 2), 3, 10, 10, 0, name="complex")
    one((1, 12, 1), 1, name="one_frame")
    one((1, 40, 1), 20, 10, name="gaps_between_frames")
    one((3, 25, 1), 4, 8, 8, form="input", name="dynamic")
    one((0, 25, 1), 4, 8, name="no_batch")


def windows(cases):
    hamming = {"a": 25 / 46, "b": 21 / 46, "c": 0.0}
    formulas = {"HannWindow": {"a": 0.5, "b": 0.5, "c": 0.0}, "HammingWindow": hamming, "BlackmanWindow": {"a": 0.42, "b": 0.5, "c": 0.08}}
    torch_windows = {"HannWindow": torch.hann_window, "BlackmanWindow": torch.blackman_window,
                     "HammingWindow": lambda n, periodic, dtype: torch.hamming_window(n, periodic, hamming["a"], hamming["b"], dtype=dtype)}

    for op, make in torch_windows.items():
        for size in (2, 3, 10, 33):
            for periodic in (0, 1):
                expected = make(size, periodic=bool(periodic), dtype=torch.float64).numpy()
                attrs = {"size": size} | ({} if periodic else {"periodic": 0})
                cases.add(op, [], [expected.astype(F32)], attrs, name=f"{size}_{'periodic' if periodic else 'symmetric'}", rtol=1e-6,
                          atol=1e-15, oracle="PyTorch in double precision")
        for dtype in (F64, F16, BF16):
            expected = make(12, periodic=True, dtype=torch.float64).numpy().astype(dtype)
            cases.add(op, [], [expected], {"size": 12, "output_datatype": Dtype(NAMES[dtype.name])}, name=dtype.name, rtol=RTOL[dtype],
                      atol=1e-15, oracle="PyTorch in double precision")
        f = formulas[op]
        # Only the middle of a symmetric window of one sample is left: the formula at half its period.
        cases.add(op, [], [np.array([f["a"] + f["b"] + f["c"]], F32)], {"size": 1, "periodic": 0}, name="1_symmetric", rtol=1e-6,
                  oracle="the middle of a longer window")
        cases.add(op, [], [np.array([f["a"] - f["b"] + f["c"]], F32)], {"size": 1}, name="1_periodic", rtol=1e-6, atol=1e-15,
                  oracle="the first sample of a symmetric window of two")
        cases.add(op, [], [np.zeros(0, F32)], {"size": 0}, name="0", oracle="by definition")
        expected = make(7, periodic=True, dtype=torch.float64).numpy().astype(F32)
        for form, constants in (("dynamic", ()), ("constant", (0,))):
            cases.add(op, [np.array(7, np.int32)], [expected], {}, name=f"size_{form}", constants=constants, rtol=1e-6, atol=1e-15,
                      oracle="PyTorch in double precision")
    expected = np.array([0, 0, 1, 0], np.int32)  # 0, 0.5, 1, 0.5, cut to whole numbers
    cases.add("HannWindow", [], [expected], {"size": 4, "output_datatype": Dtype("i32")}, name="int32", oracle="by definition")


def mel(bands, length, rate, low, high):
    """Bin by bin from the definition in ONNX: edges of bands are equally spaced in mel and cut down to bins."""
    hertz_to_mel = lambda f: 2595 * np.log10(1 + f / 700)
    edges = np.linspace(hertz_to_mel(low), hertz_to_mel(high), bands + 3)[:bands + 2]
    bins = np.floor((length + 1) * 700 * (10 ** (edges / 2595) - 1) / rate)
    out = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        left, peak, right = bins[band:band + 3]
        for i in range(out.shape[0]):
            if left < i < peak:
                out[i, band] = (i - left) / (peak - left)
            elif i == peak:
                out[i, band] = 1
            elif peak < i < right:
                out[i, band] = (right - i) / (right - peak)
    return out


def mel_weights(cases):
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")

    def one(values, name, dtype=F32, form="attribute", constants=()):
        attrs = {} if dtype == F32 else {"output_datatype": Dtype(NAMES[dtype.name])}
        inputs = []
        if form == "attribute":
            attrs.update({n: (float(v) if n.endswith("hertz") else v) for n, v in zip(names, values)})
        else:
            inputs = [np.array(v, np.int64) for v in values[:3]] + [np.array(v, F32) for v in values[3:]]
        cases.add("MelWeightMatrix", inputs, [mel(*values).astype(dtype)], attrs, name=name, rtol=RTOL[dtype], constants=constants,
                  oracle="its definition in numpy")

    for dtype in (F32, F64, F16, BF16):
        one((8, 16, 8192, 0, 4096), dtype.name, dtype)
    one((5, 101, 16000, 300, 7000), "odd_length")
    one((20, 64, 16000, 20, 8000), "more_bands_than_bins")
    one((6, 64, 8000, 100, 6000), "beyond_the_spectrum")
    one((4, 32, 8000, 500, 500), "no_width")
    one((0, 32, 8000, 0, 4000), "no_bands")
    one((3, 0, 8000, 0, 4000), "no_length")
    one((8, 40, 8000, 100, 4000), "dynamic", form="input")
    one((8, 40, 8000, 100, 4000), "constant_inputs", form="input", constants=(0, 1, 2, 3, 4))


if __name__ == "__main__":
    all_cases = Cases("numpy")
    dft(all_cases)
    stft(all_cases)
    windows(all_cases)
    mel_weights(all_cases)
    all_cases.write(sys.argv[1])
