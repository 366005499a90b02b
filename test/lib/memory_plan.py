#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the memory that `attune inspect` predicts with what a process used.

  memory_plan.py ATTUNE MODEL.json WORK DIM=SIZE... [--FLAG...]

Compiles the model with random weights and these flags, runs one forward pass,
or generates a token after a prompt of seq - 1 if the model has no inputs of its
own but a vocabulary V, and looks at the most memory the process had. Code,
libraries and stacks are no part of a plan: some 5 MB, so take sizes that need
hundreds.
"""
import json
import os
import struct
import subprocess
import sys


def peak_bytes(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} failed")
    return usage.ru_maxrss * 1024


def write_zeros(path, tensors):
    """A safetensors file; {name: (dtype, shape)}."""
    sizes = {"F32": 4, "I64": 8}
    header, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        begin = end
        count = 1
        for size in shape:
            count *= size
        end += count * sizes[dtype]
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # unaligned inputs would be copied
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def main():
    attune, model, work, *rest = sys.argv[1:]
    more = [word for word in rest if word.startswith("--")]
    dims = dict(word.split("=") for word in rest if word not in more)
    os.makedirs(work, exist_ok=True)
    flags = [f"--dim={name}={size}" for name, size in dims.items()]
    found = subprocess.run([attune, "inspect", model, "--format=json", *flags,
                            *more],
                           capture_output=True, text=True, check=True)
    plan = json.loads(found.stdout)
    with open(model, encoding="utf-8") as file:
        description = json.load(file)
    dims = {**description.get("dims", {}), **dims}
    inputs = {}
    for name, tensor in description.get("inputs", {}).items():
        shape = [size if isinstance(size, int) else int(dims[size])
                 for size in tensor["shape"]]
        inputs[name] = (tensor["dtype"].upper(), shape)
    paths = {name: os.path.join(work, name + ".safetensors")
             for name in ("inputs", "outputs")}
    write_zeros(paths["inputs"], inputs)
    program = os.path.join(work, "model")
    subprocess.run([attune, "compile", model, "--weights=random", "-o", program,
                    *more], check=True)
    if inputs:
        planned = plan["memory"]["total_bytes"]
        used = peak_bytes([program, "run", "--inputs", paths["inputs"],
                           "--outputs", paths["outputs"]])
    else:
        planned = plan["decode"]["memory"]["total_bytes"]
        # From all of the embedding, whose rows are loaded when they are read.
        length = int(dims["seq"]) - 1
        prompt = ",".join(str(i * int(dims["V"]) // length)
                          for i in range(length))
        used = peak_bytes([program, "generate", "--prompt-ids=" + prompt,
                           "--max-new-tokens=1", "--format=ids"])
    print(f"planned {planned / 1e6:.1f} MB, used {used / 1e6:.1f} MB")
    if abs(used - planned) > 0.05 * planned:
        sys.exit("more than 5% apart")


if __name__ == "__main__":
    main()
