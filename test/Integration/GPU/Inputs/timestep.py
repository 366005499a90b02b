#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares cosines and sines of a GPU with those of libm in double precision.

  timestep.py ATTUNE WORK [FLAG...]

The model is a time step of width 2, whose angle is the time itself: 0, numbers
of all sizes up to a million, and those next to multiples of pi/2.
"""
import json
import math
import os
import random
import subprocess
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

attune, work = sys.argv[1:3]
os.makedirs(work, exist_ok=True)
draw = random.Random(5)
times = [0.0, 1.0, 999.0, 1e5, 1e6, -1e6]
times += [draw.choice([-1, 1]) * 10 ** draw.uniform(-4, 6) for _ in range(1500)]
times += [draw.randrange(636000) * math.pi / 2 for _ in range(500)]
times = array("f", times)
model, inputs, outputs = (os.path.join(work, name) for name in (
    "model.json", "in.safetensors", "out.safetensors"))
with open(model, "w", encoding="utf-8") as file:
    json.dump({"attune": 1,
               "inputs": {"time": {"dtype": "f32", "shape": ["batch"]}},
               "streams": {"step": {"input": "time", "layers": [
                   {"timestep": {"width": 2}, "name": "y"}]}},
               "outputs": {"y": "y"}}, file)
tensors.save(inputs, {"time": ("F32", [len(times)], times.tobytes())})
subprocess.run([attune, "run", model, *sys.argv[3:], "--inputs", inputs,
                "--outputs", outputs], check=True)
y = array("f", tensors.load(outputs)["y"][2])
assert len(y) == 2 * len(times)
worst, at = max((max(abs(y[2 * i] - math.cos(t)), abs(y[2 * i + 1] - math.sin(t))), t)
                for i, t in enumerate(times))
print(f"largest error {worst:.2e} at {at}")
good = worst < 2.5e-7
print("PASS" if good else "FAIL")
sys.exit(not good)
