#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small SigLIP, DINOv2, DINOv3, ViT-MAE and I-JEPA folders with random weights, run
by the compiler and compared with their formulas in f64.

  image_encoders.py ATTUNE WORK [FLAG]...
"""
import array
import math
import os
import sys
from operator import mul

from encoders import (D, HEADS, INNER, RNG, V, Runner, Weights, add, attend,
                      flatten, gelu, gelu_tanh, integers, run_tower_block,
                      tower_block, unit)
from reference_signals import interpolated


def images(count, height, width):
    return [[[[RNG.uniform(-1, 1) for _ in range(width)]
              for _ in range(height)] for _ in range(3)] for _ in range(count)]


def pixel_input(pixels):
    shape = [len(pixels), 3, len(pixels[0][0]), len(pixels[0][0][0])]
    return "F32", shape, array.array("f", flatten(pixels)).tobytes()


def narrowed(pixels):
    """The numbers that the program is given."""
    raw = iter(array.array("f", flatten(pixels)))
    return [[[[next(raw) for _ in row] for row in plane] for plane in image]
            for image in pixels]


def patches(w, name, image, patch):
    rows = []
    for top in range(0, len(image[0]) - patch + 1, patch):
        for left in range(0, len(image[0][0]) - patch + 1, patch):
            rows.append([plane[top + i][left + j] for plane in image
                         for i in range(patch) for j in range(patch)])
    return w.apply(name, rows)


def siglip_text(w, ids):
    words = w.rows("text_model.embeddings.token_embedding.weight")
    places = w.rows("text_model.embeddings.position_embedding.weight")
    x = [[a + b for a, b in zip(words[i], places[t])]
         for t, i in enumerate(ids)]
    x = run_tower_block(w, "text_model.encoder.layers.0.", x, 1e-6, gelu_tanh)
    return w.layer_norm("text_model.final_layer_norm", x, 1e-6)


def siglip_vision(w, image, patch):
    x = patches(w, "vision_model.embeddings.patch_embedding", image, patch)
    return siglip_patches(w, add(
        x, w.rows("vision_model.embeddings.position_embedding.weight")))


def siglip_patches(w, x, shown=None):
    """All patches after the norm, and what the learned query reads of those
    that are shown."""
    shown = shown or [1] * len(x)
    x = run_tower_block(w, "vision_model.encoder.layers.0.", x, 1e-6, gelu_tanh,
                        shown=shown)
    x = w.layer_norm("vision_model.post_layernorm", x, 1e-6)
    head = "vision_model.head."
    matrix = w.rows(head + "attention.in_proj_weight")
    offset = w.vector(head + "attention.in_proj_bias")

    def project(part, rows):
        return [[sum(map(mul, row, matrix[part * D + c]))
                 + offset[part * D + c] for c in range(D)] for row in rows]
    q = project(0, [w.vector(head + "probe")])[0]
    k, v = project(1, x), project(2, x)
    size, joined = D // HEADS, []
    for first in range(0, D, size):
        scores = [sum(q[first + c] * row[first + c] for c in range(size))
                  / math.sqrt(size) for row in k]
        powers = [math.exp(s - max(scores)) * one
                  for s, one in zip(scores, shown)]
        joined += [sum(p * row[first + c] for p, row in zip(powers, v))
                   / sum(powers) for c in range(size)]
    y = w.apply(head + "attention.out_proj", [joined])
    h = w.layer_norm(head + "layernorm", y, 1e-6)
    y = add(y, w.apply(head + "mlp.fc2",
                       w.apply(head + "mlp.fc1", h, gelu_tanh)))
    return x, y[0]


def siglip(run):
    """Both towers, each alone, and their scores with a factor and a bias."""
    w, image, patch = Weights(), 8, 4
    siglip_weights(w, (3, patch, patch), 4)
    pixels = narrowed(images(2, image, image))
    seen = [siglip_vision(w, one, patch) for one in pixels]
    configs, towers = siglip_towers(
        run, w, "siglip", {"image_size": image, "patch_size": patch},
        {"pixel_values": pixel_input(pixels)}, seen)
    siglip_models(run, w, "siglip", configs, towers,
                  [[1] * len(x) for x, _ in seen])
    for name, (inputs, expected) in towers.items():
        run.compare("siglip_" + name, os.path.join(run.work, "siglip_" + name),
                    inputs, expected)


def siglip_weights(w, patch, places):
    w.new("text_model.embeddings.token_embedding.weight", V, D)
    w.new("text_model.embeddings.position_embedding.weight", 9, D)
    tower_block(w, "text_model.encoder.layers.0.")
    w.norm("text_model.final_layer_norm", D)
    w.linear("text_model.head", D, D)
    w.new("vision_model.embeddings.patch_embedding.weight", D, *patch)
    w.new("vision_model.embeddings.patch_embedding.bias", D)
    w.new("vision_model.embeddings.position_embedding.weight", places, D)
    tower_block(w, "vision_model.encoder.layers.0.")
    w.norm("vision_model.post_layernorm", D)
    head = "vision_model.head."
    w.new(head + "probe", 1, 1, D)
    w.new(head + "attention.in_proj_weight", 3 * D, D)
    w.new(head + "attention.in_proj_bias", 3 * D)
    w.linear(head + "attention.out_proj", D, D)
    w.norm(head + "layernorm", D)
    w.linear(head + "mlp.fc1", INNER, D)
    w.linear(head + "mlp.fc2", D, INNER)
    w.values["logit_scale"] = ([1], array.array("f", [1.25]))
    w.values["logit_bias"] = ([1], array.array("f", [-0.75]))


def siglip_towers(run, w, kind, sizes, inputs, seen):
    """Both towers of images and texts, each in a folder of its own: what they are
    given and what they are to make of it. `seen` is that of the images."""
    both = {"hidden_size": D, "intermediate_size": INNER,
            "num_attention_heads": HEADS, "num_hidden_layers": 1}
    configs = {"text": dict(both, vocab_size=V, max_position_embeddings=9),
               "vision": dict(both, **sizes)}
    for name, config in configs.items():
        config["model_type"] = f"{kind}_{name}_model"
        own = Weights()
        own.values = {n: value for n, value in w.values.items()
                      if n.startswith(name)}
        own.save(os.path.join(run.work, f"{kind}_{name}"), dict(
            config, architectures=[kind.capitalize() + name.capitalize() + "Model"]))
    ids = [[3, 5, 29, 7, 29, 1], [4, 8, 9, 10, 29, 12], [3, 29, 5, 5, 6, 7]]
    words = [siglip_text(w, row) for row in ids]
    ends = [w.apply("text_model.head", x[-1:])[0] for x in words]
    towers = {"text": ({"input_ids": integers(ids)},
                       {"last_hidden_state": words, "pooler_output": ends}),
              "vision": (inputs,
                         {"last_hidden_state": [x for x, _ in seen],
                          "pooler_output": [pooled for _, pooled in seen]})}
    return configs, towers


def siglip_models(run, w, kind, configs, towers, shown):
    """The towers together, and a classifier of the images' patches that are
    shown."""
    folder, prefix = os.path.join(run.work, kind), kind.capitalize()
    config = {"model_type": kind, "architectures": [prefix + "Model"],
              "text_config": configs["text"], "vision_config": configs["vision"]}
    w.save(folder, config)
    texts, views = ([unit(x) for x in made["pooler_output"]]
                    for _, made in towers.values())
    scores = [[math.exp(1.25) * sum(map(mul, t, v)) - 0.75
               for v in views] for t in texts]
    inputs = towers["vision"][0]
    run.compare(kind, folder, dict(inputs, **towers["text"][0]),
                {"text_embeds": texts, "image_embeds": views,
                 "logits_per_text": scores,
                 "logits_per_image": [list(c) for c in zip(*scores)]})
    # A classifier keeps the pooling, which it does not use.
    own, folder = Weights(), folder + "_classifier"
    own.values = {n: value for n, value in w.values.items()
                  if n.startswith("vision")}
    own.linear("classifier", 3, D)
    own.save(folder, dict(config, num_labels=3, architectures=[
        prefix + "ForImageClassification"]))
    means = [[sum(map(mul, c, ones)) / sum(ones)
              for c in zip(*x)] for x, ones in
             zip(towers["vision"][1]["last_hidden_state"], shown)]
    run.compare(kind + "_classifier", folder, inputs,
                {"logits": own.apply("classifier", means)})


def antialiased(count, extent):
    """Of each of `extent` places the weights of the `count` that it covers: Keys'
    cubic with a = -1/2, as wide as a place if that is larger than one of these."""
    def kernel(x):
        x = abs(x)
        if x < 1:
            return 1.5 * x ** 3 - 2.5 * x ** 2 + 1
        return -0.5 * x ** 3 + 2.5 * x ** 2 - 4 * x + 2 if x < 2 else 0.0
    unit, rows = max(count / extent, 1.0), []
    for place in range(extent):
        middle = (place + 0.5) * count / extent
        row = [kernel((i + 0.5 - middle) / unit) for i in range(count)]
        rows.append([a / math.fsum(row) for a in row])
    return rows


def resampled(table, grid, size):
    """The rows of a grid for an image of another size; the first row stays."""
    down, across = (antialiased(*pair) for pair in zip(grid, size))
    return table[:1] + [[math.fsum(
        p * q * table[1 + i * grid[1] + j][c] for i, p in enumerate(rows)
        for j, q in enumerate(columns)) for c in range(len(table[0]))]
        for rows in down for columns in across]


def dinov2(run, gated, registers=0):
    """Images of the size that positions were learned for, and of another one.
    A gated feed-forward layer has two thirds of the width, rounded up. Registers
    behind the class token have no positions, and the table of the others is
    antialiased."""
    w, patch, side = Weights(), 4, 3
    kind = "dinov2_with_registers" if registers else "dinov2"
    labels = (kind, kind + "_gated")
    w.new("embeddings.cls_token", 1, 1, D)
    w.new("embeddings.mask_token", 1, D)
    if registers:
        w.new("embeddings.register_tokens", 1, registers, D)
    w.new("embeddings.patch_embeddings.projection.weight", D, 3, patch, patch)
    w.new("embeddings.patch_embeddings.projection.bias", D)
    w.new("embeddings.position_embeddings", 1, side * side + 1, D)
    at = "encoder.layer.0."
    heads = [at + "attention." + n for n in (
        "attention.query", "attention.key", "attention.value", "output.dense")]
    for name in heads:
        w.linear(name, D, D)
    for n in (1, 2):
        w.norm(f"{at}norm{n}", D)
        w.new(f"{at}layer_scale{n}.lambda1", D, scale=1.5)
    inner = (2 * D * 2 // 3 + 7) // 8 * 8 if gated else 2 * D
    if gated:
        w.linear(at + "mlp.weights_in", 2 * inner, D)
        w.linear(at + "mlp.weights_out", D, inner)
    else:
        w.linear(at + "mlp.fc1", inner, D)
        w.linear(at + "mlp.fc2", D, inner)
    w.norm("layernorm", D)
    folder = os.path.join(run.work, labels[gated])
    config = {
        "model_type": kind, "architectures": [
            "Dinov2WithRegistersModel" if registers else "Dinov2Model"],
        "hidden_size": D, "num_attention_heads": HEADS, "num_hidden_layers": 1,
        "mlp_ratio": 2, "image_size": side * patch, "patch_size": patch,
        "layer_norm_eps": 1e-6, "layerscale_value": 1.0,
        "use_swiglu_ffn": gated}
    if registers:
        config["num_register_tokens"] = registers
    w.save(folder, config)
    # Scores of the class token beside the mean of the patches.
    classified = os.path.join(run.work, labels[gated] + "_classifier")
    scores = Weights()
    scores.values = {f"{kind}.{n}": value for n, value in w.values.items()}
    scores.linear("classifier", 3, 2 * D)
    scores.save(classified, dict(
        config, architectures=[config["architectures"][0].replace(
            "Model", "ForImageClassification")],
        id2label={str(i): f"label {i}" for i in range(3)}))

    def scaled(name, rows):
        return [[a * b for a, b in zip(row, w.vector(name + ".lambda1"))]
                for row in rows]

    def feed(h):
        if not gated:
            return w.apply(at + "mlp.fc2", w.apply(at + "mlp.fc1", h, gelu))
        both = w.apply(at + "mlp.weights_in", h)
        return w.apply(at + "mlp.weights_out", [
            [a / (1 + math.exp(-a)) * b
             for a, b in zip(row[:inner], row[inner:])] for row in both])
    for height, width in ((12, 12), (8, 20)):
        pixels, states = narrowed(images(2, height, width)), []
        table = w.vector("embeddings.position_embeddings")
        table = [table[i:i + D] for i in range(0, len(table), D)]
        size = height // patch, width // patch
        places = resampled(table, (side, side), size) if registers else (
            interpolated(table, 1, (side, side), size, "bicubic"))
        own = w.vector("embeddings.register_tokens") if registers else []
        for image in pixels:
            x = [w.vector("embeddings.cls_token")] + patches(
                w, "embeddings.patch_embeddings.projection", image, patch)
            x = add(x, places)
            x[1:1] = [own[i:i + D] for i in range(0, len(own), D)]
            h = w.layer_norm(at + "norm1", x, 1e-6)
            x = add(x, scaled(at + "layer_scale1",
                              w.attention(heads, h, [1] * len(x))))
            h = w.layer_norm(at + "norm2", x, 1e-6)
            x = add(x, scaled(at + "layer_scale2", feed(h)))
            states.append(w.layer_norm("layernorm", x, 1e-6))
        # What a caller knows, and the program before it runs does not.
        kept, tokens = run.flags, "embeddings.patch_embeddings.projection"
        run.flags = kept + [
            f"--dim={tokens}.places_and_{1 + registers}={len(states[0])}"]
        run.compare(f"{labels[gated]}_{height}x{width}", folder,
                    {"pixel_values": pixel_input(pixels)},
                    {"last_hidden_state": states,
                     "pooler_output": [x[0] for x in states]})
        run.flags = kept
        run.compare(f"{labels[gated]}_classifier_{height}x{width}", classified,
                    {"pixel_values": pixel_input(pixels)},
                    {"logits": scores.apply("classifier", [
                        x[0] + [sum(c) / (len(x) - 1 - registers)
                                for c in zip(*x[1 + registers:])]
                        for x in states])})


def relatives_of_vit(run, kind):
    """ViT-MAE's encoder, whose file has the decoder, too, and I-JEPA, which has
    no class token."""
    w, patch, side = Weights(), 4, 2
    classes = kind == "vit_mae"
    prefix = "vit." if classes else ""
    if classes:
        w.new(prefix + "embeddings.cls_token", 1, 1, D)
    w.new(prefix + "embeddings.patch_embeddings.projection.weight", D, 3, patch, patch)
    w.new(prefix + "embeddings.patch_embeddings.projection.bias", D)
    w.new(prefix + "embeddings.position_embeddings", 1, side * side + classes, D)
    at = prefix + "encoder.layer.0."
    heads = [at + "attention." + n for n in (
        "attention.query", "attention.key", "attention.value", "output.dense")]
    for name in heads:
        w.linear(name, D, D)
    for part in ("before", "after"):
        w.norm(f"{at}layernorm_{part}", D)
    w.linear(at + "intermediate.dense", INNER, D)
    w.linear(at + "output.dense", D, INNER)
    w.norm(prefix + "layernorm", D)
    pixels, states = narrowed(images(2, side * patch, side * patch)), []
    table = w.vector(prefix + "embeddings.position_embeddings")
    places = [table[i:i + D] for i in range(0, len(table), D)]
    for image in pixels:
        x = patches(w, prefix + "embeddings.patch_embeddings.projection", image, patch)
        if classes:
            x = [w.vector(prefix + "embeddings.cls_token")] + x
        x = add(x, places)
        h = w.layer_norm(at + "layernorm_before", x, 1e-12)
        x = add(x, w.attention(heads, h, [1] * len(x)))
        h = w.layer_norm(at + "layernorm_after", x, 1e-12)
        x = add(x, w.apply(at + "output.dense",
                           w.apply(at + "intermediate.dense", h, gelu)))
        states.append(w.layer_norm(prefix + "layernorm", x, 1e-12))
    config = {
        "model_type": kind, "hidden_size": D, "num_attention_heads": HEADS,
        "num_hidden_layers": 1, "intermediate_size": INNER,
        "image_size": side * patch, "patch_size": patch, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "qkv_bias": True}
    folder = os.path.join(run.work, kind)
    inputs = {"pixel_values": pixel_input(pixels)}
    if classes:
        w.new("decoder.mask_token", 1, 1, D)
        w.linear("decoder.decoder_embed", D, D)
        w.save(folder, dict(config, architectures=["ViTMAEForPreTraining"],
                            mask_ratio=0.75, norm_pix_loss=False,
                            decoder_hidden_size=D, decoder_num_hidden_layers=1,
                            decoder_intermediate_size=D,
                            decoder_num_attention_heads=1))
        run.compare(kind, folder, inputs, {"last_hidden_state": states})
        return
    w.save(folder, dict(config, architectures=["IJepaModel"]))
    run.compare(kind, folder, inputs, {"last_hidden_state": states})
    scores = Weights()
    scores.values = {"ijepa." + n: value for n, value in w.values.items()}
    scores.linear("classifier", 3, D)
    folder += "_classifier"
    scores.save(folder, dict(config, architectures=["IJepaForImageClassification"],
                             id2label={str(i): f"label {i}" for i in range(3)}))
    means = [[sum(c) / len(x) for c in zip(*x)] for x in states]
    run.compare(kind + "_classifier", folder, inputs,
                {"logits": scores.apply("classifier", means)})


def turned(row, place, sides, base):
    """Each head's first and second half, as pairs: the first half of these by
    the row of a place's centre, the second by its column. Sides are 2 long."""
    size, y = D // HEADS, list(row)
    for head in range(0, D, size):
        for pair in range(size // 2):
            axis, step = divmod(pair, size // 4)
            centre = (place[axis] + 0.5) / sides[axis] * 2 - 1
            angle = 2 * math.pi * centre * base ** (-step / (size / 4))
            a, b = head + pair, head + pair + size // 2
            y[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
            y[b] = row[b] * math.cos(angle) + row[a] * math.sin(angle)
    return y


def dinov3_attention(w, at, rows, before, sides, base):
    q, k, v = (w.apply(f"{at}attention.{n}_proj", rows) for n in "qkv")
    for place in range(len(rows) - before):
        where = divmod(place, sides[1])
        for x in (q, k):
            x[before + place] = turned(x[before + place], where, sides, base)
    return w.apply(at + "attention.o_proj", attend(q, k, v))


def dinov3(run, gated):
    """Images of two sizes, behind a class token and, in the plain form, two
    registers. The gated form has no biases in its attention, as the largest
    published model."""
    w, patch, base = Weights(), 4, 100
    registers, name = (0, "dinov3_gated") if gated else (2, "dinov3")
    w.new("embeddings.cls_token", 1, 1, D)
    w.new("embeddings.mask_token", 1, 1, D)
    if registers:
        w.new("embeddings.register_tokens", 1, registers, D)
    w.new("embeddings.patch_embeddings.weight", D, 3, patch, patch)
    w.new("embeddings.patch_embeddings.bias", D)
    for at in ("layer.0.", "layer.1."):
        for part in "qkvo":
            w.linear(f"{at}attention.{part}_proj", D, D,
                     bias=part == "o" or (part != "k" and not gated))
        for n in (1, 2):
            w.norm(f"{at}norm{n}", D)
            w.new(f"{at}layer_scale{n}.lambda1", D, scale=1.5)
        if gated:
            w.linear(at + "mlp.gate_proj", INNER, D)
        w.linear(at + "mlp.up_proj", INNER, D)
        w.linear(at + "mlp.down_proj", D, INNER)
    w.norm("norm", D)
    folder = os.path.join(run.work, name)
    w.save(folder, {
        "model_type": "dinov3_vit", "architectures": ["DINOv3ViTModel"],
        "hidden_size": D, "num_attention_heads": HEADS, "num_hidden_layers": 2,
        "intermediate_size": INNER, "image_size": 12, "patch_size": patch,
        "hidden_act": "silu" if gated else "gelu", "use_gated_mlp": gated,
        "query_bias": not gated, "value_bias": not gated,
        "num_register_tokens": registers, "pos_embed_rescale": 2.0})

    def scaled(part, rows):
        return [[a * b for a, b in zip(row, w.vector(part + ".lambda1"))]
                for row in rows]

    def feed(at, h):
        up = w.apply(at + "mlp.up_proj", h, *([] if gated else [gelu]))
        if gated:
            gate = w.apply(at + "mlp.gate_proj", h,
                           lambda a: a / (1 + math.exp(-a)))
            up = [[a * b for a, b in zip(u, g)] for u, g in zip(up, gate)]
        return w.apply(at + "mlp.down_proj", up)
    for height, width in ((12, 12), (8, 20)):
        pixels, states = narrowed(images(2, height, width)), []
        for image in pixels:
            x = [w.vector("embeddings.cls_token")]
            if registers:
                every = w.vector("embeddings.register_tokens")
                x += [every[i * D:(i + 1) * D] for i in range(registers)]
            x += patches(w, "embeddings.patch_embeddings", image, patch)
            for at in ("layer.0.", "layer.1."):
                h = w.layer_norm(at + "norm1", x, 1e-5)
                x = add(x, scaled(at + "layer_scale1", dinov3_attention(
                    w, at, h, 1 + registers, (height // patch, width // patch),
                    base)))
                h = w.layer_norm(at + "norm2", x, 1e-5)
                x = add(x, scaled(at + "layer_scale2", feed(at, h)))
            states.append(w.layer_norm("norm", x, 1e-5))
        kept, tokens = run.flags, "embeddings.patch_embeddings.places"
        tokens += f"_and_{registers}_and_1" if registers else "_and_1"
        run.flags = kept + [f"--dim={tokens}={len(states[0])}"]
        run.compare(f"{name}_{height}x{width}", folder,
                    {"pixel_values": pixel_input(pixels)},
                    {"last_hidden_state": states,
                     "pooler_output": [x[0] for x in states]})
        run.flags = kept


def main():
    attune, work = sys.argv[1:3]
    os.makedirs(work, exist_ok=True)
    run = Runner(attune, work, sys.argv[3:])
    siglip(run)
    dinov2(run, gated=False)
    dinov2(run, gated=True)
    dinov2(run, gated=False, registers=2)
    dinov3(run, gated=False)
    dinov3(run, gated=True)
    relatives_of_vit(run, "vit_mae")
    relatives_of_vit(run, "ijepa")
    print("all passed" if run.failures == 0 else f"{run.failures} failed")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
