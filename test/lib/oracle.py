#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a recorded language model through the compiler and compares.

  oracle.py ATTUNE CASE WORK [--executable] [FLAG]...

CASE is a Hugging Face folder with fixtures. Logits and the hidden states of
each layer, a single token, and left-padded rows are compared within the
tolerance of its case.json; greedy ids (with the cache) must be equal, to those
of `ATTUNE generate` and of repeated `run`s without a cache. With --executable
the model is compiled to a file, which then does the same (but for the hidden
states). FLAGs go to the compiler. Exit status 0: all passed.
"""
import array
import json
import os
import struct
import subprocess
import sys

import tensors

HERE = os.path.dirname(os.path.abspath(__file__))


class Case:
    def __init__(self, attune, folder, work, executable, flags):
        self.folder, self.work, self.failures = folder, work, 0
        path = os.path.join(folder, "fixtures.safetensors")
        self.fixtures = tensors.load(path)
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
            self.case = json.load(file)
        self.executable = executable
        if executable:
            program = os.path.join(work, "model")
            self.check("compile", subprocess.run(
                [attune, "compile", folder, "-o", program] + flags,
                capture_output=True, text=True))
            self.run_command = [program, "run"]
            self.generate_command = [program, "generate"]
        else:
            self.run_command = [attune, "run", folder] + flags
            self.generate_command = [attune, "generate", folder] + flags

    def check(self, name, result):
        good = result.returncode == 0
        print(("PASS " if good else "FAIL ") + name)
        if not good or result.stderr:
            print(result.stdout + result.stderr)
        self.failures += not good
        return good

    def forward(self, name, inputs, flags=()):
        """Runs the tensors NAME=INPUT; the path of the outputs, or None."""
        path = os.path.join(self.work, name.replace(" ", "-"))
        tensors.save(path + ".in.safetensors", inputs)
        result = subprocess.run(
            self.run_command + ["--inputs", path + ".in.safetensors",
                                "--outputs", path + ".out.safetensors",
                                *flags], capture_output=True, text=True)
        if result.returncode != 0:
            self.check(name, result)
            return None
        return path + ".out.safetensors"

    def compare(self, name, output, *flags):
        if output:
            self.check(name, subprocess.run(
                [sys.executable, os.path.join(HERE, "compare_safetensors.py"),
                 self.folder, output, *flags], capture_output=True, text=True))

    def test_encoder_decoder(self):
        names = self.case["inputs"]
        output = self.forward("teacher forcing",
                              {name: self.fixtures[name] for name in names})
        required = self.case["outputs"]
        self.compare(" and ".join(required), output,
                     *[f"--require={name}" for name in required])
        # What the encoder reads: ids as the prompt, or a file.
        start = self.numbers("greedy.decoder_start_ids")
        expected = self.numbers("greedy.generated_ids")
        encoded = {name: self.fixtures["greedy." + name] for name in names
                   if "greedy." + name in self.fixtures}
        path = os.path.join(self.work, "encoded.safetensors")
        tensors.save(path, encoded)
        flags = ["--greedy", "--ignore-eos"]
        if "input_ids" in encoded:
            self.generate("generate greedy", self.numbers("greedy.input_ids"),
                          expected, *flags)
        self.generate("generate greedy from a file", start, expected,
                      f"--inputs={path}", *flags)
        self.test_uncached("greedy", start, expected, encoded,
                           "decoder_input_ids")

    def test_logits(self):
        inputs = {"input_ids": self.fixtures["input_ids"]}
        states = ("hidden_states.0" in self.fixtures and not self.executable)
        output = self.forward("logits", inputs,
                              ["--tap=hidden_states"] if states else [])
        if output and states:
            found = tensors.load(output)
            parts = tensors.split(found, "hidden_states")
            tensors.save(output, parts)
            count = sum(name.startswith("hidden_states.")
                        for name in self.fixtures)
            self.compare("logits and hidden states", output,
                         "--require=logits",
                         *[f"--require=hidden_states.{i}"
                           for i in range(count)])
        else:
            self.compare("logits", output, "--require=logits")

    def test_variants(self):
        for prefix in ("single", "leftpad"):
            inputs = {name.split(".", 1)[1]: tensor
                      for name, tensor in self.fixtures.items()
                      if name.startswith(prefix + ".")
                      and name.split(".", 1)[1] in (
                          "input_ids", "attention_mask", "position_ids")}
            if inputs:
                self.compare(prefix, self.forward(prefix, inputs),
                             f"--map=logits={prefix}.logits",
                             "--require=logits")
        if "long.input_ids" in self.fixtures:
            output = self.forward(
                "long", {"input_ids": self.fixtures["long.input_ids"]})
            if output:
                dtype, shape, raw = tensors.load(output)["logits"]
                last = raw[-len(raw) // shape[1]:]
                tensors.save(output, {"long.last_logits": (
                    dtype, [1, 1, shape[2]], last)})
                self.compare("long", output, "--require=long.last_logits")

    def generate(self, name, ids, expected, *flags):
        result = subprocess.run(
            self.generate_command +
            ["--prompt-ids", ",".join(map(str, ids)), "--format=ids",
             f"--max-new-tokens={len(expected)}", *flags],
            capture_output=True, text=True)
        text = ",".join(map(str, expected))
        if result.returncode == 0 and result.stdout.strip() != text:
            result.returncode = 1
            result.stderr += "expected " + text + "\n"
        self.check(name, result)

    def numbers(self, name):
        return list(array.array("q", self.fixtures[name][2]))

    def test_greedy(self):
        for name in sorted(self.fixtures):
            stem, _, kind = name.rpartition(".")
            if kind != "generated_ids" or stem.startswith("sample"):
                continue
            prompt = stem + (".prompt_ids" if stem == "greedy" else ".ids")
            flags = ["--greedy"]
            if stem == "greedy":
                flags.append("--ignore-eos")
            ids, expected = self.numbers(prompt), self.numbers(name)
            self.generate(f"generate {stem}", ids, expected, *flags)
            if stem in ("greedy", "prompt1"):
                self.test_uncached(stem, ids, expected)

    def test_uncached(self, stem, ids, expected, others=None,
                      name="input_ids"):
        """Every token must be the argmax of the whole sequence's logits."""
        whole = ids + expected[:-1]
        inputs = dict(others or {})
        inputs[name] = (
            "I64", [1, len(whole)], struct.pack(f"<{len(whole)}q", *whole))
        output = self.forward("uncached " + stem, inputs)
        if not output:
            return
        _, shape, raw = tensors.load(output)["logits"]
        values, width = array.array("f", raw), shape[2]
        found = []
        for row in range(len(ids) - 1, len(whole)):
            logits = values[row * width:(row + 1) * width]
            found.append(max(range(width), key=logits.__getitem__))
        good = found == expected
        self.failures += not good
        print(("PASS" if good else "FAIL") + f" without a cache: {stem}")

    def test_sampled(self):
        texts = self.case.get("sampled", {}).get("texts", [])
        for i, text in enumerate(texts):
            self.generate(f"sample {i}", self.numbers(f"sample{i}.ids"),
                          self.numbers(f"sample{i}.generated_ids"),
                          f"--temperature={text['temperature']}",
                          f"--seed={text['seed']}")


def main():
    arguments = [word for word in sys.argv[1:] if word != "--executable"]
    attune, folder, work = arguments[:3]
    os.makedirs(work, exist_ok=True)
    case = Case(attune, folder, work, "--executable" in sys.argv,
                arguments[3:])
    if case.case.get("task") == "seq2seq":
        case.test_encoder_decoder()
    else:
        case.test_logits()
        case.test_variants()
        case.test_greedy()
        case.test_sampled()
    print("FAILED" if case.failures else "all passed")
    return 1 if case.failures else 0


if __name__ == "__main__":
    sys.exit(main())
