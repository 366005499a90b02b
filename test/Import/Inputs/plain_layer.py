#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives a layer of a quantized folder the tensors that it was quantized from.

  plain_layer.py FOLDER QUANTIZED LAYER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib"))
import tensors  # noqa: E402

plain, quantized = (tensors.load(os.path.join(folder, "model.safetensors"))
                    for folder in sys.argv[1:3])
layer = f".layers.{sys.argv[3]}."
made = {name: value for name, value in quantized.items() if layer not in name}
made.update({name: value for name, value in plain.items() if layer in name})
tensors.save(os.path.join(sys.argv[2], "model.safetensors"), made)
