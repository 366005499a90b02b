#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records what a PyTorch module gives: its weights, and inputs beside outputs.

  record.py

Writes model.safetensors and recorded.safetensors. Needs torch and safetensors.
Put your own module in the place of this one.
"""
import torch
from safetensors.torch import save_file

torch.manual_seed(1)
layer = torch.nn.TransformerEncoderLayer(
    d_model=64, nhead=8, dim_feedforward=96, activation="gelu",
    layer_norm_eps=1e-6, norm_first=True, batch_first=True)
module = torch.nn.TransformerEncoder(
    layer, num_layers=2, norm=torch.nn.LayerNorm(64, eps=1e-6),
    enable_nested_tensor=False)
# All layers of a stack begin as copies: a description that mixes them up would
# not be noticed.
for parameter in module.parameters():
    torch.nn.init.normal_(parameter, std=0.2)
module.eval()

record = {"x": torch.randn(2, 23, 64)}
seen = torch.ones(2, 23, dtype=torch.bool)
seen[1, 18:] = False  # the second text is shorter
record["attention_mask"] = seen

# What each layer gives, to find the one that differs.
for i, each in enumerate(module.layers):
    each.register_forward_hook(
        lambda _, inputs, output, i=i: record.update({f"layers.{i}": output}))
with torch.no_grad():
    # PyTorch's mask is true where a token is hidden.
    record["y"] = module(record["x"], src_key_padding_mask=~seen)

save_file(module.state_dict(), "model.safetensors")
save_file({name: tensor.contiguous() for name, tensor in record.items()},
          "recorded.safetensors")
