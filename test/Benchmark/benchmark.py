#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Speed of compiled code beside the machine's peak and what else is installed.

  benchmark.py ATTUNE OUT [--groups matmul,attention,model] [--threads 2]
               [--runs 5] [--rounds 3] [--small]

Writes OUT/results.json and OUT/roofline.svg and prints a table. Each round runs
every case once, Attune and its rivals one after the other, so that a busy
moment of the machine meets all of them; a figure is the median of the rounds,
each the median of `runs`. Its share of the roof is the median of shares of what
the machine reached right before and after each run. The peak that the table
names is the best that any probe saw. What memory bounds finds nothing in a
cache, whoever runs it. Where the CPU multiplies bf16 or bytes, every case runs
in bf16, and products and models in int8, too.
"""
import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time

import rivals
import roofline

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")


def matmul_case(m, n, k):
    spec = {"attune": 1, "dims": {"N": n, "K": k},
            "inputs": {"x": {"dtype": "f32", "shape": ["batch", "seq", "K"]}},
            "layers": [{"linear": {"out": "N", "bias": False}}]}
    return {"group": "matmul", "name": f"matmul {m}x{n}x{k}", "spec": spec,
            "dims": {"seq": m}, "flops": 2 * m * n * k,
            "rivals": (rivals.MATMUL, (m, n, k))}


def attention_case(heads, width, tokens, causal):
    tensor = {"dtype": "f32", "shape": [1, heads, "N", width]}
    spec = {"attune": 1, "inputs": {"q": tensor, "k": tensor, "v": tensor},
            "layers": [{"attention": {"query": "q", "key": "k", "value": "v",
                                      "causal": causal}}]}
    # Useful products only: a causal row sees half the keys on average.
    scores = heads * tokens * (tokens + 1 if causal else 2 * tokens) // 2
    name = f"attention {heads}x{width} N={tokens}{' causal' * causal}"
    return {"group": "attention", "name": name, "spec": spec,
            "dims": {"N": tokens}, "flops": 4 * scores * width,
            "rivals": (rivals.ATTENTION, (heads, width, tokens, causal))}


def decode_attention_case(heads, kv_heads, width, cached, batch):
    """One query a sequence against its cache, which is read once."""
    cache = {"dtype": "f32", "shape": ["B", kv_heads, "N", width]}
    spec = {"attune": 1,
            "inputs": {"q": {"dtype": "f32", "shape": ["B", heads, 1, width]},
                       "k": cache, "v": cache},
            "layers": [{"attention": {"query": "q", "key": "k", "value": "v"}}]}
    return {"group": "attention",
            "name": f"attention {heads}/{kv_heads}x{width} M=1 N={cached}",
            "spec": spec, "dims": {"N": cached, "B": batch},
            "flops": 4 * batch * heads * cached * width,
            "rivals": (rivals.DECODE_ATTENTION,
                       (heads, kv_heads, width, cached, batch))}


def model_case(name, dims, stack=(), path=None):
    """`stack`: layers, vocabulary (or 0) and the arguments of onnx_stack.Stack
    that make the same blocks."""
    return {"group": "model", "name": name, "dims": dims,
            "rivals": (rivals.MODEL, stack) if stack else ({}, ()),
            "path": path or os.path.join(EXAMPLES, name, "model.json")}


def cases(groups, small):
    if "matmul" in groups:
        shapes = [(m, n, k) for m in (128, 512)
                  for n, k in ((768, 768), (2048, 2048), (3072, 768), (768, 3072),
                               (4096, 4096), (11008, 4096), (4096, 11008))]
        shapes += [(m, 4096, 4096) for m in (1, 2, 3, 5, 12, 17, 127, 513)]
        for shape in [(1, 64, 48), (17, 64, 48)] if small else shapes:
            yield matmul_case(*shape)
    if "attention" in groups:
        shapes = [(heads, width, tokens, causal)
                  for heads, width in ((12, 64), (32, 128))
                  for tokens in (512, 2048, 8192) for causal in (False, True)]
        tiny = [(2, 16, 33, causal) for causal in (False, True)]
        for shape in tiny if small else shapes:
            yield attention_case(*shape)
        # 16 sequences, so that their caches are larger than the machine's.
        shape = (4, 2, 16, 33, 2) if small else (32, 4, 64, 4096, 16)
        yield decode_attention_case(*shape)
    if "model" in groups:
        base = (768, 12, 3072)
        models = [
            ("gpt2-small", {"seq": 512},
             (12, 50257, 512, *base, "tanh", True, False)),
            ("bert", {"seq": 512}, (12, 0, 512, *base, "none", False, True)),
            ("vit", {}, (12, 0, 197, *base, "none", False, False)),
            ("tinyllama", {"seq": 512}, (),
             os.path.join(HERE, "tinyllama.json"))]
        for model in [("block-512", {"seq": 16})] if small else models:
            yield model_case(*model)


def stored_as(case, dtype):
    """The same case with weights of 16 bits, and inputs if they are multiplied."""
    spec = case.get("spec")
    if spec and (case["group"] == "attention" or dtype == "bf16"):
        inputs = {name: {**tensor, "dtype": dtype}
                  for name, tensor in spec["inputs"].items()}
        spec = {**spec, "inputs": inputs}
    return {**case, "name": f"{case['name']} {dtype}", "type": dtype,
            "narrow": f"--dtype={dtype}", "spec": spec}


def in_bf16(case):
    return stored_as(case, "bf16")


def in_f16(case):
    """No CPU here multiplies f16: it is for what reads more than it computes."""
    return stored_as(case, "f16")


def reads_mostly(case):
    return case["name"].startswith(("matmul 1x", "gpt2")) or "M=1" in case["name"]


def in_int8(case):
    """The same case with matrices of bytes."""
    return {**case, "name": case["name"] + " int8", "type": "int8",
            "narrow": "--quantize=int8"}


def narrowed(case, peak):
    """What the CPU has instructions for."""
    if peak["bf16_gflops"]:
        yield in_bf16(case)
    if reads_mostly(case):
        yield in_f16(case)
    if peak["int8_gops"] and case["group"] != "attention":
        yield in_int8(case)


# What `attune bench` calls the peaks of the types.
PEAKS = {"f32": "f32_gflops", "bf16": "bf16_gflops", "int8": "int8_gops"}


def run_attune(attune, case, folder, options, threads):
    path = case.get("path")
    if not path:
        path = os.path.join(folder, "case.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(case["spec"], file)
    command = [attune, "bench", path, f"--threads={threads}",
               f"--runs={options.runs}", "--format=json"]
    command += [f"--dim={name}={size}" for name, size in case["dims"].items()]
    if "narrow" in case:
        command.append(case["narrow"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{case['name']}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@functools.lru_cache
def more_than_caches():
    return bytearray(256 << 20), bytearray(256 << 20)


def run_rival(once, runs, cold):
    """Seconds of a call; `cold`: with what it reads in no cache, where calls in
    a row would find what they read before."""
    def timed(calls):
        if cold:
            source, target = more_than_caches()
            target[:] = source
        start = time.perf_counter()
        for _ in range(calls):
            once()
        return (time.perf_counter() - start) / calls

    once()
    calls = 1 if cold else 1 + int(0.01 / timed(1))  # `attune bench`'s
    seconds = [timed(calls) for _ in range(runs)]
    getattr(once, "stop", lambda: None)()
    return statistics.median(seconds)


def collect(options, folder):
    """Cases with their results of all rounds, and the probes' best."""
    prepared = {}
    for table in (rivals.MATMUL, rivals.ATTENTION, rivals.DECODE_ATTENTION,
                  rivals.MODEL):
        for name, load in table.items():
            prepared[load] = load(options.threads)
    chosen = list(cases(options.groups.split(","), options.small))
    peaks, bandwidth, measured = {}, 0, {}
    for number in range(options.rounds):
        for case in chosen:  # which the first round may lengthen
            found = run_attune(options.attune, case, folder, options,
                               options.threads)
            for name, key in PEAKS.items():
                if found["peak"][key]:
                    peaks[name] = max(found["peak"][key], peaks.get(name, 0))
            bandwidth = max(bandwidth, found["peak"]["read_gbs"])
            if number == 0 and "narrow" not in case:
                chosen += narrowed(case, found["peak"])
            for run in found["runs"]:
                measured.setdefault((case["name"], run["name"]), []).append(run)
            if case["group"] == "model" and options.threads > 1:
                alone = run_attune(options.attune, case, folder, options, 1)
                measured.setdefault((case["name"], "alone"), []).append(
                    alone["runs"][0])
            table, sizes = case["rivals"]
            kind = case.get("type", "f32")
            for name, load in table.items():
                once = (prepared[load] and kind in rivals.TYPES and
                        prepared[load](kind, *sizes))
                if once:
                    cold = found["runs"][0]["roof"] == "read_gbs"
                    seconds = run_rival(once, options.runs, cold)
                    measured.setdefault((case["name"], name), []).append(
                        {"gflops": flops(options.attune, case) / seconds / 1e9})
    return chosen, measured, peaks, bandwidth


def flops(attune, case):
    """Of a case or, of a model, as `inspect` counts them."""
    if "flops" in case:
        return case["flops"]
    dims = [f"--dim={name}={size}" for name, size in case["dims"].items()]
    done = subprocess.run([attune, "inspect", case["path"], "--format=json",
                           *dims], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["flops"]


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def summarise(chosen, measured):
    for case in chosen:
        name = case["name"]
        prefill = measured.get((name, "prefill"))
        if prefill:
            gflops = middle(prefill, "gflops")
            result = {"group": case["group"], "name": name, "gflops": gflops,
                      "intensity": gflops / middle(prefill, "gbs"),
                      "of_roof": middle(prefill, "of_peak"),
                      "rivals": {rival: middle(measured[name, rival], "gflops")
                                 for rival in case["rivals"][0]
                                 if (name, rival) in measured}}
            if alone := measured.get((name, "alone")):
                result["speedup"] = statistics.median(
                    run["gflops"] / one["gflops"]
                    for run, one in zip(prefill, alone))
            yield result
        decode = measured.get((name, "decode"))
        if decode:
            gbs, gflops = middle(decode, "gbs"), middle(decode, "gflops")
            yield {"group": "decode", "name": name + " decode", "gflops": gflops,
                   "intensity": gflops / gbs,
                   "of_roof": middle(decode, "of_peak"),
                   "rivals": {}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("attune")
    parser.add_argument("out")
    parser.add_argument("--groups", default="matmul,attention,model")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true",
                        help="tiny shapes: whether it runs, not how fast")
    options = parser.parse_args()
    groups = {"matmul", "attention", "model"}
    if unknown := set(options.groups.split(",")) - groups:
        parser.error(f"--groups: no group is called {', '.join(unknown)}; "
                     f"there are {', '.join(sorted(groups))}")
    os.makedirs(options.out, exist_ok=True)
    chosen, measured, peaks, bandwidth = collect(options, options.out)
    results = list(summarise(chosen, measured))
    title = (f"{options.threads} threads: "
             + ", ".join(f"{peak:.0f} GFLOP/s {name}"
                         for name, peak in peaks.items())
             + f", {bandwidth:.1f} GB/s")
    with open(os.path.join(options.out, "results.json"), "w",
              encoding="utf-8") as file:
        json.dump({"threads": options.threads, "peak_gflops": peaks,
                   "read_gbs": bandwidth, "results": results}, file, indent=2)
    roofline.draw(os.path.join(options.out, "roofline.svg"), title, peaks,
                  bandwidth, results)
    print(title)
    for result in results:
        beside = "".join(f"  {name} {gflops:.1f}"
                         for name, gflops in result["rivals"].items())
        if "speedup" in result:
            beside += f"  {result['speedup']:.2f}x one thread"
        print(f"{result['name']:32} {result['gflops']:8.1f} GFLOP/s "
              f"{100 * result['of_roof']:5.1f}% of the roof{beside}")


if __name__ == "__main__":
    main()
