#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies a Hugging Face folder without one of its tensors.

  drop_tensor.py FOLDER OUT NAME
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                os.pardir, os.pardir, os.pardir, "lib"))
import tensors

folder, out, name = sys.argv[1:]
os.makedirs(out, exist_ok=True)
shutil.copy(os.path.join(folder, "config.json"), out)
kept = tensors.load(os.path.join(folder, "model.safetensors"))
del kept[name]
tensors.save(os.path.join(out, "model.safetensors"), kept)
