"""The inputs that fuzzing starts from, made of what the tree has anyway.

make_seeds(FOLDER) writes a folder for each target, and FOLDER/tokenizers with
the tokenizers that the target Text tries. Inputs that once broke something are
kept in Corpus/ as they are.
"""

import base64
import json
import pathlib
import random
import struct
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent
ROOT = TEST.parent
sys.path += [str(TEST / "Tokenizers"), str(TEST / "lib")]
import kinds  # noqa: E402
from spec_generator import Generator  # noqa: E402

# An input longer than this is mutated too slowly.
MOST = 12000


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def small_tokenizer(content):
    """The same kind with a vocabulary of few tokens."""
    model = content["model"]
    vocab = model.get("vocab")
    keep = 120
    if isinstance(vocab, list):
        model["vocab"] = vocab[:keep]
    elif isinstance(vocab, dict):
        model["vocab"] = dict(list(vocab.items())[:keep])
    if "merges" in model:
        known = model["vocab"]

        def is_known(merge):
            left, right = merge if isinstance(merge, list) else merge.split(" ")
            return left in known and right in known and left + right in known
        model["merges"] = [merge for merge in model["merges"] if is_known(merge)]
    return content


def tokenizer_seeds():
    for name, content in kinds.kinds():
        yield f"{name}.json", dump(small_tokenizer(content))


def text_seeds():
    for i, text in enumerate(kinds.texts(60, 7)):
        yield f"{i}.txt", text


def json_seeds():
    for i, text in enumerate((
            '{"a": [1, -2.5e-3, true, null, "\\u00e9\\ud83d\\ude00"], "b": {}}',
            "[[[[]]], 18446744073709551616, -0.0, 1e400]", '"x"', " 7 ")):
        yield f"{i}.json", text


def template_seeds():
    cases = json.loads((TEST / "Unit/Runtime/chat-templates.json").read_text())
    for name, text in cases["templates"].items():
        yield name, text
    for i, case in enumerate(cases["expressions"]):
        yield f"expression-{i}", case["source"]


def config_seeds():
    published = json.loads((TEST / "Unit/Import/Inputs/published.json").read_text())
    for i, case in enumerate(published):
        yield f"{i}.json", dump(case["keys"])


def description_seeds():
    for path in [*sorted(ROOT.glob("examples/*/*.json")),
                 TEST / "Unit/Spec/every-key.json"]:
        text = path.read_text()
        if '"inputs"' in text and len(text) < MOST:
            yield f"{path.parent.name}-{path.name}", text


def model_seeds():
    for seed in range(60):
        yield f"{seed}.json", dump(Generator(seed).model())


def safetensors(tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = dump(header).encode()
    return struct.pack("<Q", len(text)) + text + data


TENSORS = safetensors({"a": ("F32", [2, 3], bytes(24)), "b": ("BF16", [4], bytes(8)),
                       "c": ("I64", [], bytes(8)), "d": ("F8_E4M3", [0, 5], b"")})


def safetensors_seeds():
    yield "small", TENSORS


def wave_seeds():
    for tag, bits, channels, rate in ((1, 8, 1, 8000), (1, 16, 2, 44100), (1, 24, 1, 48000),
                                      (3, 32, 1, 16000), (3, 64, 2, 22050), (0xFFFE, 32, 1, 1001)):
        size = channels * bits // 8
        head = struct.pack("<HHIIHH", tag, channels, rate, rate * size, size, bits)
        if tag == 0xFFFE:
            head += struct.pack("<HHIH14x", 22, bits, 4, 1)
        chunks = b"".join(name + struct.pack("<I", len(body)) + body
                          for name, body in ((b"fmt ", head), (b"LIST", b"ab"), (b"data", bytes(8 * size))))
        yield f"{tag}-{bits}", b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


def image_seeds():
    for path in sorted((TEST / "Unit/Runtime/Inputs/pictures").iterdir()):
        yield path.name, path.read_bytes()


def checkpoint_seeds():
    index = dump({"metadata": {"total_size": 40}, "weight_map": {
        name: "a.safetensors" for name in "abcd"}})
    yield "small", index.encode() + b"\0" + TENSORS
    for method in ({"quant_method": "gptq", "bits": 4, "group_size": 8},
                   {"quant_method": "awq", "bits": 4, "group_size": 8}):
        packed = safetensors({
            "x.qweight": ("I32", [1, 8], bytes(32)), "x.qzeros": ("I32", [1, 1], bytes(4)),
            "x.scales": ("F16", [1, 8], bytes(16)), "x.g_idx": ("I32", [8], bytes(32))})
        yield method["quant_method"], dump({"weight_map": {
            "x." + part: "a.safetensors"
            for part in ("qweight", "qzeros", "scales", "g_idx")}}).encode() + b"\0" + packed


def gguf_value(value):
    """The number of a GGUF value's kind, and its bytes."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        raw = value.encode()
        return 8, struct.pack("<Q", len(raw)) + raw
    kind, _ = gguf_value(value[0])
    return 9, struct.pack("<IQ", kind, len(value)) + b"".join(
        gguf_value(item)[1] for item in value)


def gguf_text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_seeds():
    tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab"]
    keys = {"general.architecture": "llama", "llama.context_length": 16,
            "llama.embedding_length": 32, "llama.block_count": 1,
            "llama.feed_forward_length": 32, "llama.attention.head_count": 2,
            "llama.attention.head_count_kv": 1, "llama.rope.freq_base": 10000.0,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.vocab_size": 6,
            "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": [0.0] * 6,
            "tokenizer.ggml.token_type": [2, 3, 3, 1, 1, 1],
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_bos_token": True,
            "tokenizer.chat_template": "{{ messages[0].content }}"}
    for model in ("llama", "gpt2"):
        keys["tokenizer.ggml.model"] = model
        if model == "gpt2":
            keys["tokenizer.ggml.merges"] = ["a b"]
        tensors = [("token_embd.weight", [32, 6], 0, 32 * 6 * 4),
                   ("blk.0.ffn_up.weight", [32, 32], 2, 32 * 18),
                   ("blk.0.ffn_down.weight", [32, 32], 8, 32 * 34)]
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
        for key, value in keys.items():
            kind, raw = gguf_value(value)
            head += gguf_text(key) + struct.pack("<I", kind) + raw
        offset = 0
        for name, shape, kind, size in tensors:
            head += gguf_text(name) + struct.pack("<I", len(shape))
            head += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)
            offset += -(-size // 32) * 32
        yield model, head + bytes(-len(head) % 32) + bytes(offset)


def published_tokenizer_seeds():
    for name in ("sentencepiece-bpe.model", "sentencepiece-unigram.model"):
        raw = (TEST / "Tokenizers/Inputs" / name).read_bytes()
        yield name, b"tokenizer.model\n" + raw[:MOST]
    yield "ranks", "x.tiktoken\n" + "".join(
        base64.b64encode(bytes([i])).decode() + f" {i}\n" for i in range(256))
    config = {"pattern": ".+", "default_vocab_size": 276, "version": "v3",
              "default_num_special_tokens": 20}
    yield "tekken", "tekken.json\n" + dump({"config": config, "vocab": [
        {"rank": i, "token_bytes": base64.b64encode(bytes([i])).decode()}
        for i in range(256)]})
    vocab = {chr(i): i - 33 for i in range(33, 127)} | {"th": 94, "the": 95}
    yield "merges", f"vocab.json\n{dump(vocab)}\0#version: 0.2\nt h\nth e\n"
    yield "words", "vocab.txt\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\na\n"


def metadata_seeds():
    arg = {"kind": "input", "name": "ids", "dtype": "i64", "shape": ["batch", "seq"]}
    yield "small", dump({
        "name": "m", "context": 8, "weights_bytes": 64, "weights_layout": "0" * 16,
        "entries": [{"name": "forward", "index": 0, "args": [
            {"kind": "weights"}, arg,
            {"kind": "output", "name": "logits", "dtype": "f32", "shape": ["batch", 5]}]}],
        "audio": {"input": "sound", "rate": 16000, "window": 400, "hop": 160,
                  "languages": {"en": 3}, "tasks": {"translate": 4}, "start": [4], "no_timestamps": 4},
        "needs": ["avx2"], "eos": [1], "inspect": {"parameters": 3},
        "sampling": {"temperature": 0.5}})


def weights_blob_seeds():
    blob = bytes(64)
    yield "trailer", blob + struct.pack("<QQ", 0, 64) + bytes(8) + b"ATTUNEW1"
    # An ELF file of 64 bits with a section table of one section and its names.
    names = b"\0.attune.weights\0"
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 64 + len(names), 0, 64, 0, 0, 64, 3, 2)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, 8, 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    yield "elf", header + names + sections


def command_line_seeds():
    for i, words in enumerate((
            "generate\n--prompt=a b\n--max-new-tokens=5\n--temperature=0.5\n--top-k\n3",
            "generate\n--prompt-ids=1,2,3\n--stop=x\n--logprobs=2\n--beams=2",
            "generate\n--json-schema=x\n--lookup=3\n--seed=7\n--ignore-eos",
            "run\n--inputs=a.json\n--outputs=b.npy\n--dim=batch=3",
            "serve\n--port=0\n--slots=3\n--api-key-file=x\n--no-web",
            "chat\n--system=x\n--template-variable=a=true\n--context=9",
            "embed\n--text=x\n--pooling=mean\n--normalize", "tokenize\n--text=x\n--no-special",
            "bench\n--threads=3\n--memory-limit=3GiB\n--")):
        yield f"{i}", words


def driver_seeds():
    """One command line for each verb, with flags of every kind of value."""
    for words in (
            "compile\nmodel.json\n-o\nmodel\n--cpu=x86-64-v3\n--emit=obj\n--threads=2",
            "compile\nfolder\n--target=cuda\n--gpu=sm_90a\n--dtype=bf16\n--fusion=off",
            "compile\nfolder\n--quantize=lm_head=int8,*.ffn.*=int4:g32\n--low-rank=*.ffn.*:50%",
            "compile\nfolder\n--prune-heads=layers.3.attention:0,4\n--kv-cache=int8\n--mesh=tp=2,ep=2",
            "compile\nfolder\n--lora=a:0.5\n--lora=b\n--cache=off\n--cache-size=512M",
            "compile\nm.json\n--emit=kernels\n--kernel=linear.8x8\n--insert=after-fusion:cse",
            "run\nm.json\n--inputs=a.npz\n--outputs=b.npz\n--dim=batch=3\n--timing",
            "generate\nm.gguf\n--prompt=a b\n--max-new-tokens=5\n--temperature=0.5\n--top-k\n3",
            "embed\nm\n--text=x\n--pooling=mean", "inspect\nm\n--mesh=tp=8\n--link=2us,25GB/s",
            "import\nm\n-o\n-", "verify\nm\n--quantize=int8\n--seed=3", "bench\nm\n--json",
            "tokenize\nm\n--text=x", "chat\nm\n--system=x", "serve\nm\n--port=0\n--no-web",
            "perplexity\nm\n--file=x\n--format=json", "compare\na\nb\n--inputs=x.json",
            "split\nm\n-o\nx", "--version", "help", "compile\n--help",
            "compile\nm\n--message-format=json\n--\n--cpu"):
        yield words.split("\n")[0] + "-" + str(len(words)), words


def http_seeds():
    yield "get", "GET /v1/models?x=1 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n"
    yield "length", ("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                     "Connection: close\r\n\r\n{} x")
    yield "chunks", ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                     "Expect: 100-continue\r\n\r\n4;x=\"y\"\r\nabcd\r\n0\r\nT: 1\r\n\r\n")


def constraint_seeds():
    schemas = (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1]}},
         "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": {"type": "string", "pattern": "^a+$"}, "minItems": 1,
         "maxItems": 3},
        {"anyOf": [{"const": None}, {"$ref": "#/$defs/n"}], "$defs": {
            "n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}},
        {"type": "string", "minLength": 2, "maxLength": 5, "format": "date"},
        {"type": "number", "minimum": 0, "maximum": 10}, {"oneOf": [{"type": "boolean"}]}, True)
    for i, schema in enumerate(schemas):
        yield f"schema-{i}", "s" + dump(schema)
    for i, pattern in enumerate(("[a-z]+(\\d{2,3}|x)?", "^(yes|no)$", "\\w*\\.\\S", "(a|b)*?c")):
        yield f"pattern-{i}", "p" + pattern
    yield "grammar", 'groot ::= "a" item* [^"\\n] ("b" | "c")?\nitem ::= [0-9]{1,3} "," # x\n'


def regex_seeds():
    text = "\nHello  World 1234, it's\tcafé 日本語\r\n x"
    patterns = set()
    for _, content in kinds.kinds():
        def visit(value):
            if isinstance(value, dict):
                if isinstance(value.get("Regex"), str):
                    patterns.add(value["Regex"])
                for item in value.values():
                    visit(item)
            elif isinstance(value, list):
                for item in value:
                    visit(item)
        visit({key: part for key, part in content.items() if key != "model"})
    for i, pattern in enumerate(sorted(patterns)):
        yield f"{i}", pattern.replace("\n", "\\n") + text
    for i, pattern in enumerate(("(?<=a)b(?!c)", "(?i:x)+?[^\\s\\p{L}]{2,}", "(?>a*)b|\\b.")):
        yield f"more-{i}", pattern + text


def request_seeds():
    picture = base64.b64encode(
        (TEST / "Unit/Runtime/Inputs/pictures/rgb.png").read_bytes()).decode()
    bodies = (
        {"model": "m", "prompt": "Once", "max_tokens": 4, "temperature": 0.5, "n": 2, "stop": ["x"],
         "logprobs": 2, "logit_bias": {"5": -3}, "seed": 3, "echo": True, "stream": True,
         "stream_options": {"include_usage": True}},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
         "tools": [{"type": "function", "function": {"name": "f", "parameters": {
             "type": "object", "properties": {"a": {"type": "integer"}}}}}],
         "tool_choice": "auto", "response_format": {"type": "json_schema", "json_schema": {
             "name": "x", "schema": {"type": "object"}}}, "top_logprobs": 3, "logprobs": True},
        {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "What is "},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + picture}},
            {"type": "text", "text": "?"}]}]},
        {"prompt": [[1, 2], [3]], "top_p": 0.3, "top_k": 3, "min_p": 0.1,
         "presence_penalty": 1, "frequency_penalty": -1})
    for i, body in enumerate(bodies):
        yield f"{i}.json", dump(body)
    for i, answer in enumerate((
            '<tool_call>\n{"name": "f", "arguments": {"a": [1]}}\n</tool_call>',
            "<think>\nHm.\n</think>\n\n<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
            "<tool_call><function=f><parameter=a>\n1\n</parameter></function></tool_call>",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json"
            '<|message|>{"a": 1}<|call|>',
            "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[ARGS]{}",
            '<minimax:tool_call><invoke name="f"><parameter name="a">1</parameter></invoke></minimax:tool_call>')):
        yield f"answer-{i}", answer


TARGETS = {
    "Json": json_seeds, "ChatTemplate": template_seeds, "TokenizerFile": tokenizer_seeds,
    "Text": text_seeds, "Safetensors": safetensors_seeds, "Metadata": metadata_seeds,
    "WeightsBlob": weights_blob_seeds, "CommandLine": command_line_seeds, "Http": http_seeds,
    "Driver": driver_seeds,
    "Constraint": constraint_seeds, "Regex": regex_seeds, "Request": request_seeds,
    "Description": description_seeds, "Model": model_seeds, "Config": config_seeds, "Checkpoint": checkpoint_seeds,
    "Wave": wave_seeds, "Gguf": gguf_seeds, "Image": image_seeds, "PublishedTokenizer": published_tokenizer_seeds}


def make_seeds(folder):
    for name, seeds in TARGETS.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        for file, content in seeds():
            raw = content.encode() if isinstance(content, str) else content
            if len(raw) <= MOST:
                (place / file.replace("/", "-")).write_bytes(raw)
    place = folder / "tokenizers"
    place.mkdir(parents=True, exist_ok=True)
    chosen = dict(kinds.kinds())
    for name in sorted(chosen, key=lambda name: random.Random(name).random())[:6]:
        (place / f"{name}.json").write_text(dump(chosen[name]))
