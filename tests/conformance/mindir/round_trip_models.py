"""Small ONNX models, through .msrt and MindIR back to .msrt, return the same bits.

    round_trip_models.py MINDIR_ROUND_TRIP

Writes the models of models.py and hands them to mindir_round_trip.
"""
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as work:
    models = pathlib.Path(__file__).with_name("models.py")
    subprocess.run([sys.executable, models, work], check=True)
    folders = sorted(str(p) for p in pathlib.Path(work).iterdir())
    sys.exit(subprocess.run([sys.argv[1], *folders]).returncode)
