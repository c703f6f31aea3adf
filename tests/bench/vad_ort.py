#!/usr/bin/env python3
"""A voice detector over a minute of audio, frame by frame, with tests/examples/vad_stream.c and with ONNX Runtime.

usage: vad_ort.py BIN_DIR silero_vad.onnx [ROUNDS]     (needs numpy and onnxruntime; the model is in the package silero-vad)

Both get the same frames and keep their own state. Prints the largest difference of a probability, the time of a frame on either side for
each round, and the ratio of the medians. ONNX Runtime has its default settings; its time includes what Python takes for a call, some 3 us.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

RATE, FRAME, CONTEXT = 16000, 512, 64


def a_minute():
    """Noise, silence, and voices of a kind: harmonics that glide and are cut into syllables. Seeded, 16-bit."""
    t = np.arange(60 * RATE) / RATE
    pitch = 120 + 40 * np.sin(2 * np.pi * 0.4 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 3 * t) > 0) * ((t // 5) % 2 == 0)
    sound = 0.2 * voice + 0.01 * np.random.default_rng(1).standard_normal(t.size) * ((t // 15) % 2 == 0)
    return np.clip(sound * 32768, -32768, 32767).astype(np.int16)


def through_msrt(binary, model, audio):
    done = subprocess.run([binary, model, audio], capture_output=True, text=True, check=True)
    probabilities = [float(line.split()[1]) for line in done.stdout.splitlines()]
    return np.array(probabilities), float(done.stderr.split(",")[1].split()[0])


def through_ort(session, pcm):
    state, context, rate = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32), np.array(RATE, np.int64)
    probabilities, seconds = [], 0.0
    for start in range(0, len(pcm), FRAME):
        samples = pcm[start:start + FRAME].astype(np.float32) / 32768
        frame = np.concatenate([context, np.pad(samples, (0, FRAME - len(samples)))])
        begin = time.perf_counter()
        probability, state = session.run(["output", "stateN"], {"input": frame[None], "state": state, "sr": rate})
        seconds += time.perf_counter() - begin
        probabilities.append(float(probability[0, 0]))
        context = frame[-CONTEXT:]
    return np.array(probabilities), 1e6 * seconds / len(probabilities)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bin_dir, onnx, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 7
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(onnx, options)
    pcm, ours, theirs, worst = a_minute(), [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        model, audio = os.path.join(folder, "vad.msrt"), os.path.join(folder, "audio.raw")
        pcm.tofile(audio)
        subprocess.run([os.path.join(bin_dir, "msconvert"), onnx, model, "--state", "state=stateN", "--shape", "state=2x1x128",
                        "--shape", f"input=1x{CONTEXT + FRAME}"], check=True, capture_output=True)
        for _ in range(rounds):
            theirs_now, their_time = through_ort(session, pcm)
            ours_now, our_time = through_msrt(os.path.join(bin_dir, "vad_stream"), model, audio)
            worst = max(worst, float(np.abs(ours_now - theirs_now).max()))
            ours.append(our_time)
            theirs.append(their_time)
            print(f"msrt {our_time:6.1f} us a frame, onnxruntime {their_time:6.1f} us")
    print(f"{len(theirs_now)} frames, probabilities from {theirs_now.min():.3f} to {theirs_now.max():.3f}, largest difference {worst:.2e}")
    print(f"msrt / onnxruntime {statistics.median(ours) / statistics.median(theirs):.3f} by the medians")


if __name__ == "__main__":
    main()
