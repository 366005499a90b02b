#!/usr/bin/env python3
# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small model that sees, of the tests of its class, as a Hugging Face folder and
as a pair of GGUF files in the layout of llama.cpp's converter: both must give the
same tokens and log-probabilities for the same picture.

  gguf_sight.py ATTUNE WORK KIND [write [PROJECTOR|sound]]

KIND is llava, siglip, llava_next, gemma3, pixtral, mistral3, 2, 2.5 or 3 (Qwen-VL),
idefics3, internvl or internvl3_5. Leaves the folder WORK/model, the pair in
WORK/pair and pictures; with `write` it does no more, and may write another type of
projector, or no tower of images.
"""
import importlib
import json
import os
import re
import subprocess
import sys

import gguf
import tensors
from decoder_layers import Weights

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
# Where the folder has no tokenizer: each letter is a token, and none is for
# pictures, as in the first files of LLaVA.
PLAIN = {"added_tokens": [
             {"id": 36, "content": "<unused>", "special": True},
             {"id": 37, "content": "<unk>", "special": True}],
         "model": {"merges": [], "vocab": {c: i for i, c in enumerate(LETTERS)}}}

CLIP = [("layer_norm1", "ln1"), ("layer_norm2", "ln2"),
        ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"), ("self_attn.out_proj", "attn_out"),
        ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down"),
        ("embeddings.patch_embedding", "v.patch_embd"),
        ("embeddings.position_embedding", "v.position_embd"),
        ("embeddings.class_embedding", "v.class_embd"),
        ("pre_layrnorm", "v.pre_ln"), ("post_layernorm", "v.post_ln"),
        ("linear_1", "mm.0"), ("linear_2", "mm.2"),
        ("image_newline", "v.image_newline"),
        ("mm_soft_emb_norm", "mm.soft_emb_norm"),
        ("modality_projection.proj", "mm.model.fc")]
PIXTRAL = [("attention_norm", "ln1"), ("ffn_norm", "ln2"),
           ("attention.q_proj", "attn_q"), ("attention.k_proj", "attn_k"),
           ("attention.v_proj", "attn_v"), ("attention.o_proj", "attn_out"),
           ("feed_forward.gate_proj", "ffn_gate"),
           ("feed_forward.up_proj", "ffn_up"),
           ("feed_forward.down_proj", "ffn_down"),
           ("patch_conv", "v.patch_embd"), ("ln_pre", "v.pre_ln"),
           ("merging_layer", "mm.patch_merger"), ("linear_1", "mm.1"),
           ("linear_2", "mm.2"), ("norm", "mm.input_norm")]
INTERNVL = [("layernorm_before", "ln1"), ("layernorm_after", "ln2"),
            ("attention.q_proj", "attn_q"), ("attention.k_proj", "attn_k"),
            ("attention.v_proj", "attn_v"), ("attention.q_norm", "attn_q_norm"),
            ("attention.k_norm", "attn_k_norm"),
            ("attention.projection_layer", "attn_out"), ("mlp.fc1", "ffn_up"),
            ("mlp.fc2", "ffn_down"), ("lambda_1", "ls1.weight"),
            ("lambda_2", "ls2.weight"), ("cls_token", "v.class_embd"),
            ("position_embeddings", "v.position_embd.weight"),
            ("patch_embeddings.projection", "v.patch_embd"),
            ("layer_norm", "mm.model.mlp.0"), ("layernorm", "v.post_ln"),
            ("linear_1", "mm.model.mlp.1"), ("linear_2", "mm.model.mlp.3")]
QWEN = [("norm1", "ln1"), ("norm2", "ln2"), ("attn.qkv", "attn_qkv"),
        ("attn.proj", "attn_out"), ("mlp.fc1", "ffn_up"),
        ("mlp.fc2", "ffn_down"), ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"),
        ("mlp.linear_fc1", "ffn_up"), ("mlp.linear_fc2", "ffn_down"),
        ("patch_embed.proj", "v.patch_embd"), ("pos_embed", "v.position_embd"),
        ("merger.ln_q", "v.post_ln"), ("merger.norm", "v.post_ln"),
        ("merger.mlp.0", "mm.0"), ("merger.linear_fc1", "mm.0"),
        ("merger.mlp.2", "mm.2"), ("merger.linear_fc2", "mm.2")]
# Module that makes the folder, names of tensors, projector, text's architecture.
KINDS = {"llava": ("llava", CLIP, "mlp", "llama"),
         "siglip": ("pixtral", CLIP, "mlp", "llama"),
         "llava_next": ("tiles", CLIP, "mlp", "llama"),
         "gemma3": ("gemma_vision", CLIP, "gemma3", "gemma3_text"),
         "pixtral": ("pixtral", PIXTRAL, "pixtral", "llama"),
         "mistral3": ("pixtral", PIXTRAL, "pixtral", "llama"),
         "2": ("qwen_vl", QWEN, "qwen2vl_merger", "qwen2vl"),
         "2.5": ("qwen_vl", QWEN, "qwen2.5vl_merger", "qwen2vl"),
         "3": ("qwen_vl", QWEN, "qwen3vl_merger", "qwen3vl"),
         "idefics3": ("tiles", CLIP, "idefics3", "llama"),
         "internvl": ("tiles", INTERNVL, "internvl", "qwen2"),
         "internvl3_5": ("tiles", INTERNVL, "internvl", "qwen3")}


def once(owner, name):
    """What is computed makes the tensors; nobody needs the numbers."""
    function, results = getattr(owner, name), []

    def cached(*arguments):
        if not results:
            results.append(function(*arguments))
        return results[0]
    setattr(owner, name, cached)


def make_folder(work, kind):
    """Gives the module that knows the model."""
    module = importlib.import_module(KINDS[kind][0])
    if KINDS[kind][0] == "qwen_vl":
        once(module.Sight, "see")
    else:
        once(module, "tile_vectors" if KINDS[kind][0] == "tiles" else "picture_vectors")
    if kind in ("2", "2.5", "3", "gemma3"):
        module.make_model(work, kind)
    elif kind != "llava":
        module.make_model(work)
    else:
        os.makedirs(f"{work}/model", exist_ok=True)
        w = Weights(11)
        module.picture_vectors(w, module.make_picture(f"{work}/a.png", w.random))
        module.logits(w, [1], [])
        w.save(f"{work}/model/model.safetensors")
        for name, content in (("config", module.CONFIG),
                              ("preprocessor_config", module.PREPARATION)):
            with open(f"{work}/model/{name}.json", "w") as file:
                json.dump(content, file)
    return module


def read_json(work, name):
    path = f"{work}/model/{name}.json"
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def add(writer, name, tensor, numbers=None):
    shape, flat = tensor[1], numbers or tensors.numbers(tensor)
    writer.tensor(name, "F32", shape,
                  b"".join(gguf.encode("F32", [x], None) for x in flat))


def write_text(work, kind, config, loaded):
    architecture = KINDS[kind][3]
    text = {**config, **config.get("text_config", {}), "model_type": architecture,
            "rms_norm_eps": config.get("text_config", config).get("rms_norm_eps", 1e-6)}
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if not isinstance(text.get(key), int):
            text.pop(key, None)
    writer = gguf.Writer()
    family = gguf.put_config(writer, text)
    scaling = text.get("rope_scaling") or {}
    if "mrope_section" in scaling:
        writer.key(f"{family}.rope.dimension_sections", "i32[]",
                   scaling["mrope_section"] + [0])
    elif "factor" in scaling:
        writer.key(f"{family}.rope.scaling.type", "string", "linear")
        writer.key(f"{family}.rope.scaling.factor", "f32", scaling["factor"])
    if kind == "gemma3":
        writer.key("gemma3.attention.sliding_window_pattern", "u32", 2)
    tokenizer = read_json(work, "tokenizer") or PLAIN
    for token in tokenizer["added_tokens"]:
        if kind == "siglip" and token["content"] == "[IMG]":
            token["content"] = "<image>"
    os.makedirs(f"{work}/pair", exist_ok=True)
    with open(f"{work}/pair/tokenizer.json", "w") as file:
        json.dump(tokenizer, file)
    gguf.put_tokenizer(writer, f"{work}/pair")
    os.remove(f"{work}/pair/tokenizer.json")
    chat = read_json(work, "tokenizer_config").get("chat_template")
    if chat:
        writer.keys = [raw for raw in writer.keys if b"chat_template" not in raw]
        writer.key("tokenizer.chat_template", "string", chat)
    for name, tensor in loaded.items():
        numbers = tensors.numbers(tensor)
        short = re.sub(r"^(model\.)?(language_model|text_model)\.(?!model|lm_head)",
                       "model.", name)
        short = re.sub(r"^(model\.)?language_model\.(?=model|lm_head)", "", short)
        if kind == "gemma3" and short.endswith("norm.weight"):
            numbers = [x + 1 for x in numbers]
        for part, heads in (("q_proj", text["num_attention_heads"]),
                            ("k_proj", text["num_key_value_heads"])):
            if architecture == "llama" and part in short:
                numbers = turned(numbers, tensor[1], heads)
        add(writer, gguf.rename(short, architecture), tensor, numbers)
    writer.write(f"{work}/pair/model.gguf")


def turned(numbers, shape, heads):
    width = shape[1] if len(shape) == 2 else 1
    rows = [numbers[i:i + width] for i in range(0, len(numbers), width)]
    return [x for row in gguf.interleave(rows, heads) for x in row]


def sight_name(kind, name):
    table = KINDS[kind][1]
    deep = re.fullmatch(r".*deepstack_merger_list\.(\d+)\.(?:linear_)?(\w+)\.(\w+)",
                        name)
    if deep:
        block = [0, 2][int(deep[1])]
        return f"v.deepstack.{block}.{deep[2]}.{deep[3]}"
    if name.endswith("mm_input_projection_weight"):
        return "mm.input_projection.weight"
    base, end = re.fullmatch(r"(.*?)(\.weight|\.bias)?", name).groups()
    block = re.search(r"(?:layers?|blocks)\.(\d+)\.(.*)", base)
    tail = block[2] if block else base
    for theirs, ours in table:
        if tail == theirs or tail.endswith("." + theirs):
            return (f"v.blk.{block[1]}.{ours}" if block else ours) + (end or "")
    raise ValueError(name)


def write_sight(work, kind, module, config, loaded, projector):
    vision, images = config["vision_config"], read_json(work, "preprocessor_config")
    writer, first = gguf.Writer(), kind == "llava"
    # The first files end with the block that is read.
    layers = vision.get("num_hidden_layers", vision.get("depth"))
    read = layers + 1 + config.get("vision_feature_layer", -1)
    heads = vision.get("num_attention_heads", vision.get("num_heads"))
    edge = vision.get("image_size", 40)
    number = {key: value[0] if isinstance(value, list) else value
              for key, value in (("image_size", edge),
                                 ("patch_size", vision["patch_size"]))}
    writer.key("general.architecture", "string", "clip")
    writer.key("clip.projector_type", "string", projector)
    writer.key(f"clip.has_{'audio' if projector == 'sound' else 'vision'}_encoder",
               "bool", True)
    for key, value in (
            ("block_count", read), ("attention.head_count", heads),
            ("embedding_length", vision.get("embed_dim", vision["hidden_size"])),
            # What converters write for Qwen2-VL is the text's width.
            ("feed_forward_length", vision.get("intermediate_size",
                                               vision["hidden_size"])),
            ("projection_dim", 32), *number.items()):
        writer.key("clip.vision." + key, "u32", value)
    eps = {"llava": 1e-5, "llava_next": 1e-5, "pixtral": 1e-5, "mistral3": 1e-5}
    writer.key("clip.vision.attention.layer_norm_epsilon", "f32",
               eps.get(kind, 1e-6))
    for key in ("image_mean", "image_std"):
        writer.key("clip.vision." + key, "f32[]", images[key])
    if kind in ("pixtral", "mistral3", "2.5"):
        writer.key("clip.use_silu", "bool", True)
    elif kind not in ("llava", "llava_next", "2"):
        writer.key("clip.use_gelu", "bool", True)
    if kind in ("pixtral", "mistral3"):
        writer.key("clip.rope.freq_base", "f32", module.THETA)
    if kind == "mistral3":
        writer.key("clip.vision.spatial_merge_size", "u32", module.MERGE)
    if kind == "2.5":
        writer.key("clip.vision.n_wa_pattern", "u32", 2)
        writer.key("clip.vision.window_size", "u32", 16)
    if kind == "gemma3":
        writer.key("clip.vision.projector.scale_factor", "u32", 2)
    if kind == "llava_next":
        writer.key("clip.vision.image_grid_pinpoints", "i32[]",
                   sum(module.PINPOINTS, []))
    if kind == "idefics3":
        writer.key("clip.vision.preproc_image_size", "u32", module.LONGEST)
    if kind in ("idefics3", "internvl", "internvl3_5"):
        writer.key("clip.vision.projector.scale_factor", "u32", module.SQUARE)
    if kind.startswith("internvl"):
        writer.key("clip.vision.preproc_min_tiles", "u32", 1)
        writer.key("clip.vision.preproc_max_tiles", "u32", module.MOST)
    for name, tensor in loaded.items():
        number = re.search(r"(?:layers?|blocks)\.(\d+)\.", name)
        if number and int(number[1]) >= read:
            continue
        dtype, shape, raw = tensor
        if read < layers and "post_layernorm" in name:
            continue
        ours = sight_name(kind, name)
        if ours == "v.patch_embd.weight" and len(shape) == 5:
            plane, values = shape[3] * shape[4], tensors.numbers(tensor)
            for frame, end in enumerate(("", ".1")):
                part = [values[i] for i in range(len(values))
                        if i // plane % 2 == frame]
                add(writer, ours + end, (dtype, shape[:2] + shape[3:], raw), part)
        elif ".attn_qkv." in ours and kind != "3":
            values = tensors.numbers(tensor)
            third = len(values) // 3
            for i, part in enumerate("qkv"):
                add(writer, ours.replace("qkv", part),
                    (dtype, [shape[0] // 3] + shape[1:], raw),
                    values[i * third:(i + 1) * third])
        elif projector == "pixtral" and (".attn_q." in ours or ".attn_k." in ours):
            add(writer, ours, tensor, turned(tensors.numbers(tensor), shape, heads))
        elif ours == "mm.soft_emb_norm.weight":
            add(writer, ours, tensor, [x + 1 for x in tensors.numbers(tensor)])
        elif first and ".ffn_" in ours:
            # The first files call these the other way round.
            add(writer, ours.replace("ffn_up", "ffn_x").replace(
                "ffn_down", "ffn_up").replace("ffn_x", "ffn_down"), tensor)
        elif kind == "internvl3_5" and shape[:1] == [1]:
            # Others are without dimensions of one.
            add(writer, ours, (dtype, [n for n in shape if n > 1], raw))
        else:
            add(writer, ours, tensor)
    writer.write(f"{work}/pair/mmproj-model.gguf")


def write_pair(work, kind, module, projector):
    config = read_json(work, "config")
    loaded = tensors.load(f"{work}/model/model.safetensors")
    is_text = re.compile(r"(model\.)?(language_model|text_model)\.|lm_head\."
                         r"|model\.(embed_tokens|layers|norm)\.")
    write_text(work, kind, config, {name: tensor for name, tensor in loaded.items()
                                    if is_text.match(name)})
    write_sight(work, kind, module, config, {
        name: tensor for name, tensor in loaded.items() if not is_text.match(name)},
        projector or KINDS[kind][2])


def generate(attune, model, *options):
    """Ids of the whole prompt, ids that follow, and their log-probabilities."""
    done = subprocess.run(
        [attune, "generate", model, "--greedy", "--ignore-eos",
         "--max-new-tokens=2", "--format=json", "--logprobs=3", *options],
        capture_output=True, text=True)
    if done.returncode:
        return done.stderr, []
    found = json.loads(done.stdout)
    shares = [top["logprob"] for token in found["logprobs"] for top in token["top"]]
    return (found["prompt_ids"], found["ids"]), shares


def main():
    attune, work, kind = sys.argv[1:4]
    module = make_folder(work, kind)
    write_pair(work, kind, module, "".join(sys.argv[5:6]))
    if sys.argv[4:5] == ["write"]:
        return 0
    sized = hasattr(module, "HEIGHT") and kind != "siglip"
    options = [f"--image={work}/a.png"]
    options += [f"--image-size={module.HEIGHT}x{module.LENGTH}"] if sized else []
    prompts = [[], []]
    if kind == "gemma3":
        options.append("--prompt-ids=5,36,37,37,37,37,38,7,9")
    elif kind in ("llava", "siglip"):
        prompts[0] = prompts[1] = [f"--prompt-ids=5,{module.IMAGE},7,9"]
        if kind == "llava":  # the folder has no tokenizer
            prompts[1] = ["--prompt=f<image>hj"]
    else:
        options += ["--prompt=cd", "--chat"]
    (known, shares), (found, others) = (
        generate(attune, f"{work}/{name}", *options, *prompt)
        for name, prompt in zip(("model", "pair"), prompts))
    # Exactly the same, but that files have the channels of a LLaMA's heads in
    # another order, which sums see.
    limit = 5e-6 if KINDS[kind][3] == "llama" else 0
    worst = max((abs(a - b) for a, b in zip(shares, others)), default=1)
    good = known == found and worst <= limit and len(shares) == len(others)
    print(f"  {worst:.1e} of {limit:.1e}")
    print(("PASS " if good else "FAIL ") + kind
          + ("" if good else f": {known} is not {found}"))
    return not good


if __name__ == "__main__":
    sys.exit(main())
