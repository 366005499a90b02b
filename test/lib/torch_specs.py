#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of the recorded plain torch modules, from what case.json says
of their constructors.

`describe(name, case, fixtures)` gives (description, inputs, outputs): tensors
by input name, and for each output the reference's name and a function that
brings it to the reference's shape. None: nobody wrote a description yet.

Masks of torch are true where a token is hidden, Attune's where it is seen.
"""
import array

import recurrent_specs


def inverted(tensor):
    dtype, shape, raw = tensor
    return dtype, shape, bytes(1 - value for value in raw)


def is_causal(tensor):
    """Whether a mask of torch hides exactly the later keys."""
    _, (rows, columns), raw = tensor
    return all(raw[i * columns + j] == (j > i)
               for i in range(rows) for j in range(columns))


def reshaped(tensor, shape):
    return tensor[0], list(shape), tensor[2]


def transposed(tensor):
    """[a, b, c, d] as [a, c, b, d]."""
    dtype, (a, b, c, d), raw = tensor
    size = len(raw) // (a * b * c)
    rows = [raw[at:at + size] for at in range(0, len(raw), size)]
    return dtype, [a, c, b, d], b"".join(
        rows[(i * b + j) * c + k]
        for i in range(a) for k in range(c) for j in range(b))


def floats(*shape):
    return {"dtype": "f32", "shape": list(shape)}


def mask(*shape):
    return {"dtype": "bool", "shape": list(shape)}


# --- Transformer layers under torch's names

def packed(role, module, width, bias=True):
    """Weights of nn.MultiheadAttention, whose q, k and v are one matrix."""
    weights = {}
    for i, part in enumerate("qkv"):
        rows = [i * width, (i + 1) * width]
        weights[f"{role}{part}.weight"] = {
            "tensor": module + "in_proj_weight", "rows": rows}
        if bias:
            weights[f"{role}{part}.bias"] = {
                "tensor": module + "in_proj_bias", "rows": rows}
    weights[role + "o.weight"] = module + "out_proj.weight"
    if bias:
        weights[role + "o.bias"] = module + "out_proj.bias"
    return weights


def block(prefix, torch, width, source=None, causal=False, repeat=1):
    """nn.TransformerEncoderLayer or, with a source, ...DecoderLayer."""
    eps = torch.get("layer_norm_eps", 1e-5)
    heads = {"heads": torch["nhead"], "bias": True}
    options = {
        "placement": "pre" if torch.get("norm_first") else "post",
        "norm": {"kind": "layer_norm", "eps": eps},
        "attention": dict(heads, causal=causal),
        "ffn": {"width": torch["dim_feedforward"],
                "activation": torch.get("activation", "relu")}}
    weights = packed("attention.", prefix + "self_attn.", width)
    if source:
        options["cross"] = dict(heads, source=source)
        weights.update(packed("cross.", prefix + "multihead_attn.", width))
    for role, name in (("ffn.up", "linear1"), ("ffn.down", "linear2"),
                       ("norm1", "norm1"),
                       ("norm2", "norm3" if source else "norm2"),
                       ("norm_cross", "norm2")):
        if role != "norm_cross" or source:
            for kind in (".weight", ".bias"):
                weights[role + kind] = prefix + name + kind
    layer = {"block": options, "weights": weights,
             "name": prefix.rstrip(".") or "layer"}
    if repeat > 1:
        layer["repeat"] = repeat
    return layer


def encoder(name, case, fixtures):
    torch = case["torch"]
    width, count = torch["d_model"], torch["num_layers"]
    single = "layers.0.norm1.weight" not in case["weights"]
    prefix = "" if single else "layers.{i}."
    layers = [block(prefix, torch, width, repeat=count)]
    if torch["final_norm"]:
        layers.append({"layer_norm": {"eps": torch["layer_norm_eps"]},
                       "name": "norm"})
    model = {"attune": 1, "name": name,
             "inputs": {"src": floats("batch", "tokens", width),
                        "attention_mask": mask("batch", "tokens")},
             "streams": {"main": {"input": "src", "layers": layers}},
             "outputs": {"out": layers[-1]["name"]}}
    inputs = {"src": fixtures["src"], "attention_mask":
              inverted(fixtures["src_key_padding_mask"])}
    return model, inputs, {"out": ("out", None)}


def same(width):
    """A stream that only passes its input on."""
    return [{"activation": {"function": "identity"}, "name": "given"}]


def decoder_layer(name, case, fixtures):
    torch = case["torch"]
    width = torch["d_model"]
    assert is_causal(fixtures["tgt_mask"])
    model = {"attune": 1, "name": name,
             "inputs": {"tgt": floats("batch", "tokens", width),
                        "memory": floats("batch", "keys", width),
                        "memory_attention_mask": mask("batch", "keys")},
             "streams": {
                 "memory": {"input": "memory", "layers": same(width)},
                 "decoder": {"input": "tgt", "layers": [
                     block("", torch, width, "memory", causal=True)]}},
             "outputs": {"out": "layer"}}
    inputs = {"tgt": fixtures["tgt"], "memory": fixtures["memory"],
              "memory_attention_mask":
              inverted(fixtures["memory_key_padding_mask"])}
    return model, inputs, {"out": ("out", None)}


def stacks(prefix, torch, width):
    """The layers of nn.Transformer: either stack ends with a norm."""
    norm = {"layer_norm": {"eps": torch.get("layer_norm_eps", 1e-5)}}
    return (
        [block(prefix + "encoder.layers.{i}.", torch, width,
               repeat=torch["num_encoder_layers"]),
         dict(norm, name=prefix + "encoder.norm")],
        [block(prefix + "decoder.layers.{i}.", torch, width, "encoder",
               causal=True, repeat=torch["num_decoder_layers"]),
         dict(norm, name=prefix + "decoder.norm")])


def transformer(name, case, fixtures):
    torch = case["torch"]
    width = torch["d_model"]
    assert is_causal(fixtures["tgt_mask"])
    encode, decode = stacks("", torch, width)
    model = {"attune": 1, "name": name,
             "inputs": {"src": floats("batch", "keys", width),
                        "tgt": floats("batch", "tokens", width),
                        "src_attention_mask": mask("batch", "keys"),
                        "tgt_attention_mask": mask("batch", "tokens")},
             "streams": {"encoder": {"input": "src", "layers": encode},
                         "decoder": {"input": "tgt", "layers": decode}},
             "outputs": {"out": "decoder.norm", "memory": "encoder.norm"}}
    inputs = {"src": fixtures["src"], "tgt": fixtures["tgt"]}
    for side in ("src", "tgt"):
        inputs[side + "_attention_mask"] = inverted(
            fixtures[side + "_key_padding_mask"])
    return model, inputs, {"out": ("out", None), "memory": ("memory", None)}


def original(name, case, fixtures):
    """Attention is all you need, end to end."""
    torch = case["torch"]
    width, vocab = torch["d_model"], torch["vocab"]
    encode, decode = stacks("t.", torch, width)

    def start(label):
        return [{"embedding": {"vocab": vocab, "width": width,
                               "scale": width ** 0.5},
                 "name": label + "_emb", "weights": {"weight": "emb.weight"}},
                {"positions": {"kind": "sinusoidal"},
                 "name": label + "_positions"}]
    model = {"attune": 1, "name": name,
             "inputs": {side: {"dtype": "i64", "shape": ["batch", side]}
                        for side in ("src", "tgt")},
             "streams": {
                 "encoder": {"input": "src", "layers": start("src") + encode},
                 "decoder": {"input": "tgt", "layers": start("tgt") + decode +
                             [{"linear": {"tied": "src_emb"},
                               "name": "head"}]}},
             "outputs": {"logits": "head"},
             "generation": {"decoder_start": torch["bos"]}}
    return (model, {side: fixtures[side] for side in ("src", "tgt")},
            {"logits": ("logits", None)})


# --- One module

def alone(name, width, layers, x):
    """Layers that each read the input and give an output of their own."""
    return {"attune": 1, "name": name,
            "inputs": {"x": floats("batch", "tokens", width)},
            "streams": {f"stream{i}": {"input": "x", "layers": [dict(
                layers[key], name=key)]} for i, key in enumerate(layers)},
            "outputs": {key: key for key in layers}}, {"x": as_tokens(x)}


def as_tokens(tensor):
    """A tensor of rows as [batch, tokens, width]."""
    shape = list(tensor[1])
    while len(shape) < 3:
        shape.insert(0, 1)
    return reshaped(tensor, shape)


def back(fixtures, names):
    return {name: (name, lambda tensor, shape=fixtures[name][1]:
                   reshaped(tensor, shape)) for name in names}


def norms(name, case, fixtures):
    eps, width = case["torch"]["eps"], fixtures["x"][1][-1]
    weights = {"weight": "weight"}
    if name.startswith("layer_norm"):
        layers = {
            "layer_norm": {"layer_norm": {"eps": eps},
                           "weights": dict(weights, bias="bias")},
            "layer_norm_nobias": {"layer_norm": {"eps": eps, "bias": False},
                                  "weights": weights}}
    else:
        layers = {
            "rms_norm": {"rms_norm": {"eps": eps}, "weights": weights},
            "rms_norm_gemma": {"rms_norm": {"eps": eps, "offset": 1},
                               "weights": weights}}
    return (*alone(name, width, layers, fixtures["x"]),
            back(fixtures, layers))


def gated(name, case, fixtures):
    torch = case["torch"]
    weights = {f"{part}.{kind}": f"{part}_proj.{kind}"
               for part in ("gate", "up", "down")
               for kind in (("weight", "bias") if torch["bias"]
                            else ("weight",))}
    layers = {"out": {"ffn": {"width": torch["ff"], "gated": True,
                              "activation": torch["act"],
                              "bias": torch["bias"]}, "weights": weights}}
    return (*alone(name, torch["d"], layers, fixtures["x"]),
            back(fixtures, layers))


def attention(name, case, fixtures):
    torch = case["torch"]
    width, bias = torch["embed_dim"], torch.get("bias", True)
    layer = {"attention": {"heads": torch["num_heads"], "bias": bias},
             "name": "attn", "weights": packed("", "", width, bias)}
    model = {"attune": 1, "name": name,
             "outputs": {"attn_output": "attn",
                         "attn_weights": "attn.attention"}}
    outputs = {key: (key, None) for key in model["outputs"]
               if key in fixtures}
    if "memory" in fixtures:
        layer["attention"]["source"] = "memory"
        model["inputs"] = {"query": floats("batch", "tokens", width),
                           "memory": floats("batch", "keys", width)}
        model["streams"] = {
            "memory": {"input": "memory", "layers": same(width)},
            "main": {"input": "query", "layers": [layer]}}
        return model, {key: fixtures[key] for key in model["inputs"]}, outputs
    assert is_causal(fixtures["attn_mask"])
    layer["attention"]["causal"] = True
    model["inputs"] = {"x": floats("batch", "tokens", width),
                       "attention_mask": mask("batch", "tokens")}
    model["streams"] = {"main": {"input": "x", "layers": [layer]}}
    return model, {"x": fixtures["x"], "attention_mask":
                   inverted(fixtures["key_padding_mask"])}, outputs


# --- Functions

# Names of the recorded functions that a description spells otherwise.
FUNCTIONS = {"gelu_erf": "gelu", "leaky_relu_0.01": "leaky_relu"}


def activations(name, case, fixtures):
    layers = {output: {"activation": {"function":
                                      FUNCTIONS.get(output, output)}}
              for output in ("relu", "gelu_erf", "gelu_tanh", "quick_gelu",
                             "silu", "sigmoid", "tanh", "relu_squared",
                             "softplus", "mish", "elu", "leaky_relu_0.01",
                             "hardswish")}
    return (*alone(name, fixtures["x"][1][-1], layers, fixtures["x"]),
            back(fixtures, layers))


def functions(name, fixtures):
    """What of a case is no layer, as IR of MLIR's own ops, and its outputs."""
    if name != "activations":
        return None, {}
    shape = f'attune.shape = ["batch", "tokens", {fixtures["x"][1][-1]}]'
    tensor = f'tensor<?x?x{fixtures["x"][1][-1]}xf32>'
    found = {"erf": "%erf", "exp_neg_abs": "%exp"}
    results = ", ".join(f'{tensor} {{attune.kind = "output", '
                        f'attune.name = "{key}", {shape}}}' for key in found)
    text = f"""
func.func @forward(%x: {tensor} {{attune.kind = "input", attune.name = "x", {shape}}})
    -> ({results}) attributes {{attune.entry}} {{
  %erf = math.erf %x : {tensor}
  %abs = math.absf %x : {tensor}
  %neg = arith.negf %abs : {tensor}
  %exp = math.exp %neg : {tensor}
  return {", ".join(found.values())} : {", ".join([tensor] * len(found))}
}}
"""
    return text, back(fixtures, found)


def softmax(name, case, fixtures):
    layers = {"softmax": {"softmax": {}},
              "log_softmax": {"softmax": {"log": True}}}
    return (*alone(name, fixtures["x"][1][-1], layers, fixtures["x"]),
            back(fixtures, layers))


def rotary(name, case, fixtures):
    torch = case["torch"]
    batch, heads, tokens, width = fixtures["x"][1]
    x = reshaped(transposed(fixtures["x"]), [batch, tokens, heads * width])
    layers = {pairing: {"rotary": {"heads": heads, "rope": {
        "theta": torch["base"], "channels": torch["rotary_dim"],
        "interleaved": pairing == "interleaved"}}}
              for pairing in ("half", "interleaved")}
    model, inputs = alone(name, heads * width, layers, x)
    inputs["x_position_ids"] = fixtures["position_ids"]
    model["inputs"]["x_position_ids"] = {
        "dtype": "i64", "shape": ["batch", "tokens"]}

    def heads_first(tensor):
        return transposed(reshaped(tensor, [batch, tokens, heads, width]))
    return model, inputs, {key: (key, heads_first) for key in layers}


def sinusoids(name, case, fixtures):
    """Added to a stream of zeros."""
    length, width = case["torch"]["L"], case["torch"]["d"]
    layouts = {"interleaved": "interleaved", "concat_marian": "blocks",
               "concat_tensor2tensor": "tensor2tensor"}
    layers = {key: {"positions": {"kind": "sinusoidal", "layout": layout}}
              for key, layout in layouts.items()}
    zeros = ("F32", [1, length, width],
             array.array("f", [0.0] * length * width).tobytes())
    model, inputs = alone(name, width, layers, zeros)
    model["inputs"]["x_position_ids"] = {
        "dtype": "i64", "shape": ["batch", "tokens"]}
    inputs["position_ids"] = reshaped(fixtures["positions"], [1, length])
    return model, inputs, back(fixtures, layers)


BY_PREFIX = {
    "encoder_": encoder, "decoder_layer": decoder_layer,
    "transformer_": transformer, "aiayn": original, "mha_": attention,
    "layer_norm": norms, "rms_norm": norms, "swiglu": gated, "geglu": gated,
    "activations": activations, "softmax": softmax, "rope_": rotary,
    "sinusoidal": sinusoids}


def describe(name, case, fixtures):
    for prefix, build in BY_PREFIX.items():
        if name.startswith(prefix):
            return build(name, case, fixtures)
    return recurrent_specs.describe(name, case, fixtures)
