#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every recorded case through the compiler and prints a table.

  oracle_table.py ATTUNE ORACLE WORK [--specs=FOLDER] [--jobs=N]
                  [--only=TEXT]... [--fused|--unfused] [--narrow] [--flag=FLAG]...
                  [--programs=FOLDER [--prepare]] [--limit=SECONDS]
                  [--launch=WORDS] [--option=OPTION]...

ORACLE holds hf/, torch/, sdpa/ and trained/. A case is compiled to a program,
with fused attention and without, and the program runs all that was recorded of
it: the forward pass with its hidden states, a single token, padded rows, greedy
ids. FLAGs go to the compiler. A torch case has its description from torch_specs.py or is
FOLDER/torch/<case>.json, whose inputs and outputs have the recorded names.

With --narrow the target rounds inputs of products to the 16 bits of a model's
weights. PyTorch does that in the same type, and is off from what f64 gives by
some share of the largest value: twice as much is allowed.

With --prepare the programs are compiled into FOLDER and not run; without it
those in FOLDER are run, perhaps on another machine, and ATTUNE is not.

With --launch these words stand before each program: mpirun -n 2, for models that
FLAGs cut for two ranks. OPTIONs go to the programs.

One row per output: the largest difference, what is allowed, and the verdict. A
model whose architecture the compiler says it does not know, or that nobody has
described, gets a row that says so. Exit status 1 if anything differs or fails.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

import compare_safetensors
import recurrent_specs
import sdpa
import tensors
import torch_specs

MISSING = ("no importer", "no description")
# How far PyTorch in bf16 is off on hf/llama_bf16 (its case.json says it:
# logits_bf16_compute), as a share of the largest value; f16 has steps of an
# eighth.
OFF_IN_BF16 = 0.05496 / 3.789


class Row:
    def __init__(self, case, path, output, verdict, error="", allowed="",
                 detail=""):
        self.case, self.path, self.output = case, path, output
        self.verdict, self.error, self.allowed = verdict, error, allowed
        self.detail = detail

    def text(self):
        return (f"{self.case:38} {self.path:8} {self.output:28} "
                f"{self.error:>9} {self.allowed:>9}  {self.verdict}"
                + "".join("\n      " + line
                          for line in self.detail.strip().splitlines()[:4]))


class Failure(Exception):
    def __init__(self, what, verdict, detail):
        super().__init__(what)
        self.what, self.verdict, self.detail = what, verdict, detail


class Runner:
    """One case on one path."""

    def __init__(self, options, kind, name, fused):
        self.options = options
        self.case_name, self.path = f"{kind}/{name}", (
            "fused" if fused else "unfused")
        self.flags = options.flag + ([] if fused else ["--fusion=off"])
        self.kind, self.name, self.rows = kind, name, []
        self.folder = os.path.join(options.oracle, kind, name)
        self.work = os.path.join(options.work, kind, name, self.path)
        os.makedirs(self.work, exist_ok=True)
        with open(os.path.join(self.folder, "case.json"),
                  encoding="utf-8") as file:
            self.case = json.load(file)
        path = os.path.join(self.folder, "fixtures.safetensors")
        self.fixtures = tensors.load(path)
        self.reference = compare_safetensors.load(path)

    def row(self, *arguments, **more):
        self.rows.append(Row(self.case_name, self.path, *arguments, **more))

    def command(self, what, words):
        try:
            result = subprocess.run(words, capture_output=True, text=True,
                                    timeout=self.options.limit)
        except subprocess.TimeoutExpired:
            raise Failure(what, "FAIL", f"not done after "
                          f"{self.options.limit} seconds") from None
        if result.returncode != 0:
            unknown = "' is not known; known are" in result.stderr
            raise Failure(what, "no importer" if unknown else
                          f"FAIL (status {result.returncode})",
                          "" if unknown else result.stderr)
        return result

    def run(self):
        try:
            if self.kind == "sdpa":
                self.run_sdpa()
            elif self.kind == "torch" or "model_type" not in self.case:
                self.run_described()
            else:
                self.run_model()
        except Failure as failure:
            self.row(failure.what, failure.verdict, detail=failure.detail)
        return self.rows

    # --- Comparing

    def off_in_16_bits(self):
        """The share of the largest value that PyTorch is off, or 0."""
        config = os.path.join(self.folder, "config.json")
        if not self.options.narrow or not os.path.exists(config):
            return 0
        with open(config, encoding="utf-8") as file:
            kind = json.load(file).get("torch_dtype")
        return {"bfloat16": OFF_IN_BF16, "float16": OFF_IN_BF16 / 8}.get(kind, 0)

    def tolerance(self, name):
        rules = self.case.get("tolerance", {})
        rule = rules.get(name) or rules.get("logits") or next(
            iter(rules.values()), {"atol": 0.0})
        atol = 2 * self.off_in_16_bits() * rule.get("max_abs_ref", 0)
        return max(atol, rule["atol"]), rule.get("rtol", 0.0)

    def compare(self, label, got, reference=None):
        """`got` is what tensors.load gives of one tensor, or None."""
        reference = reference or label
        if got is None:
            return self.row(label, "FAIL", detail="is not among the outputs")
        want = self.reference[reference]
        atol, rtol = self.tolerance(reference)
        keep = compare_safetensors.rows_that_count(
            reference, want.shape, self.reference,
            self.case.get("compare_where", ""))
        wrong, largest = compare_safetensors.compare(
            label, compare_safetensors.Tensor(*got), want, atol, rtol, keep)
        self.row(label, "FAIL" if wrong else "ok", f"{largest:.2g}",
                 f"{atol:.2g}" if want.is_float else "equal", detail=wrong)

    # --- Programs

    def compile(self, model, *flags, program="model"):
        folder = self.options.programs
        self.program = os.path.join(
            *([folder, self.kind, self.name, self.path] if folder
              else [self.work]), program)
        if folder and not self.options.prepare:
            if not os.path.exists(self.program):
                raise Failure("", "no program", "")
            return
        os.makedirs(os.path.dirname(self.program), exist_ok=True)
        self.command("compile", [self.options.attune, "compile", model, "-o",
                                 self.program, *flags, *self.flags])
        if self.options.prepare:
            raise Failure("compile", "ok", "")

    def forward(self, label, inputs):
        path = os.path.join(self.work, label)
        tensors.save(path + ".in.safetensors", inputs)
        self.command(label, [
            *self.options.launch, self.program, "run", "--inputs",
            path + ".in.safetensors", "--outputs", path + ".out.safetensors",
            "--threads=1", *self.options.option])
        return tensors.load(path + ".out.safetensors")

    def attempt(self, step, *arguments):
        """A step whose failure leaves the others to run."""
        try:
            step(*arguments)
        except Failure as failure:
            self.row(failure.what, failure.verdict, detail=failure.detail)

    # --- Hugging Face folders

    def run_model(self):
        states = sum(name.startswith("hidden_states.")
                     for name in self.fixtures)
        self.compile(self.folder,
                     *(["--tap=hidden_states"] if states else []))
        self.attempt(self.run_forward, states)
        for prefix in ("single", "leftpad"):
            inputs = {name.split(".", 1)[1]: tensor
                      for name, tensor in self.fixtures.items()
                      if name.startswith(prefix + ".")
                      and "logits" not in name}
            if inputs:
                self.attempt(self.run_variant, prefix, inputs)
        for name in sorted(self.fixtures):
            stem, _, kind = name.rpartition(".")
            if kind == "generated_ids" and not stem.startswith("sample"):
                self.attempt(self.run_generate, stem, name)

    def run_forward(self, states):
        names = self.case.get("inputs") or [
            name for name in ("input_ids", "pixel_values", "input_features")
            if name in self.fixtures]
        found = self.forward("forward", {name: self.fixtures[name]
                                         for name in names})
        if "predicted" in self.fixtures:
            found["predicted"] = self.predict(found["logits"])
        for output in self.case.get("outputs") or [
                name for name in ("logits", "predicted")
                if name in self.fixtures]:
            self.compare(output, found.get(output))
        if states:
            parts = tensors.split(found, "hidden_states") if (
                "hidden_states" in found) else {}
            for i in range(states):
                self.compare(f"hidden_states.{i}",
                             parts.get(f"hidden_states.{i}"))

    @staticmethod
    def predict(logits):
        import array
        _, (rows, columns), raw = logits
        values = array.array("f", raw)
        best = [max(range(columns), key=values[i * columns:(i + 1) * columns]
                    .__getitem__) for i in range(rows)]
        return "I64", [rows], array.array("q", best).tobytes()

    def run_variant(self, prefix, inputs):
        found = self.forward(prefix, inputs)
        self.compare(prefix + ".logits", found.get("logits"))

    def run_generate(self, stem, name):
        numbers = compare_safetensors.Tensor(*self.fixtures[name]).values()
        prompt = next(self.fixtures[key] for key in (
            stem + ".prompt_ids", stem + ".input_ids", stem + ".ids")
            if key in self.fixtures)
        ids = compare_safetensors.Tensor(*prompt).values()
        flags = ["--ignore-eos"] if stem == "greedy" else []
        result = self.command(name, [
            *self.options.launch, self.program, "generate", "--greedy", "--format=ids",
            "--prompt-ids=" + ",".join(map(str, ids)),
            f"--max-new-tokens={len(numbers)}", *flags, *self.options.option])
        want = ",".join(map(str, numbers))
        good = result.stdout.strip() == want
        self.row(name, "ok" if good else "FAIL", "", "equal", detail=""
                 if good else f"got {result.stdout.strip()}\nnot {want}")

    # --- Descriptions

    def run_described(self):
        path = os.path.join(self.options.specs or "", self.kind,
                            self.name + ".json")
        if self.options.specs and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                spec = json.load(file)
            inputs = {name: self.fixtures[name] for name in spec["inputs"]
                      if name in self.fixtures}
            outputs = {name: (name, None) for name in spec["outputs"]
                       if name in self.fixtures}
        else:
            made = torch_specs.describe(self.name, self.case, self.fixtures)
            if not made:
                raise Failure("", "no description", "")
            spec, inputs, outputs = made
            path = os.path.join(self.work, "model.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(spec, file, indent=1)
        text, computed = torch_specs.functions(self.name, self.fixtures)
        if text:
            self.attempt(self.run_functions, text, inputs, computed)
        weights = os.path.join(self.folder, "model.safetensors")
        self.compile(path, *(["--weights=" + weights]
                             if os.path.exists(weights) else []))
        found = self.forward("forward", inputs)
        for name, (reference, adapt) in outputs.items():
            tensor = found.get(name)
            if tensor and adapt:
                tensor = adapt(tensor)
            self.compare(name, tensor, reference)
        if "greedy_ids" in self.fixtures:
            if "generation" in spec:
                self.attempt(self.run_greedy_rows, next(iter(inputs.values())))
            else:
                self.attempt(self.run_greedy_whole, inputs)
            outputs = dict(outputs, greedy_ids=("greedy_ids", None))
        outputs = {**outputs, **computed}
        for name in self.case["outputs"] if "outputs" in self.case else ():
            if name not in [reference for reference, _ in outputs.values()]:
                self.row(name, "no description")

    def run_functions(self, text, inputs, outputs):
        """What is no layer of a description, as IR."""
        path = os.path.join(self.work, "functions.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.compile(path, program="functions")
        found = self.forward("functions", inputs)
        for name, (reference, adapt) in outputs.items():
            self.compare(name, adapt(found[name]), reference)

    def run_greedy_whole(self, inputs):
        """A decoder that keeps nothing between steps."""
        want, got = recurrent_specs.greedy_ids(
            lambda tensors: self.forward("greedy_ids", tensors), self.case,
            self.fixtures, inputs)
        self.row("greedy_ids", "ok" if got == want else "FAIL", "", "equal",
                 detail="" if got == want else f"got {got}\nnot {want}")

    def run_greedy_rows(self, sources):
        """An encoder-decoder, one source after the other."""
        def rows(tensor):
            count = tensor[1][0]
            numbers = compare_safetensors.Tensor(*tensor).values()
            each = len(numbers) // count
            return [numbers[i * each:(i + 1) * each] for i in range(count)]
        wrong = ""
        wanted = rows(self.fixtures["greedy_ids"])
        for source, want in zip(rows(sources), wanted):
            result = self.command("greedy_ids", [
                *self.options.launch, self.program, "generate", "--greedy", "--format=ids",
                "--ignore-eos", "--prompt-ids=" + ",".join(map(str, source)),
                f"--max-new-tokens={len(want)}"])
            if result.stdout.strip() != ",".join(map(str, want)):
                wrong += f"got {result.stdout.strip()}\nnot {want}\n"
        self.row("greedy_ids", "FAIL" if wrong else "ok", "", "equal",
                 detail=wrong)

    def run_sdpa(self):
        model, inputs = sdpa.describe(self.case, dict(self.fixtures))
        path = os.path.join(self.work, "model.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(model, file, indent=1)
        self.compile(path)
        found = self.forward("forward", inputs)
        for name in ("out", "lse"):
            self.compare(name, found.get(name))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attune")
    parser.add_argument("oracle")
    parser.add_argument("work")
    parser.add_argument("--specs")
    parser.add_argument("--limit", type=int, default=1200,
                        help="seconds that a program may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--launch", type=str.split, default=[])
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--programs")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--unfused", action="store_true")
    options = parser.parse_args()
    begin, tasks = time.monotonic(), []
    for kind in ("hf", "trained", "torch", "sdpa"):
        folder = os.path.join(options.oracle, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(
                folder) else ():
            if options.only and not any(text in f"{kind}/{name}/"
                                        for text in options.only):
                continue
            paths = [fused for fused, off in ((True, options.unfused),
                                              (False, options.fused))
                     if not off]
            tasks += [(options, kind, name, fused) for fused in paths]
    print(f"{'case':38} {'path':8} {'output':28} {'error':>9} {'allowed':>9}"
          "  verdict")
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for rows in pool.map(lambda task: Runner(*task).run(), tasks):
            for row in rows:
                print(row.text(), flush=True)
                verdict = row.verdict.split()[0] if row.verdict.startswith(
                    "FAIL") else row.verdict
                counts[verdict] = counts.get(verdict, 0) + 1
    print(", ".join(f"{count} {verdict}"
                    for verdict, count in sorted(counts.items()))
          + f" in {time.monotonic() - begin:.0f} s")
    return 1 if counts.get("FAIL") or not counts.get("ok") else 0


if __name__ == "__main__":
    sys.exit(main())
