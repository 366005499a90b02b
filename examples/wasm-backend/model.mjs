// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model that the wasm backend made, in JavaScript: any browser, or Node.
// lib/Runtime/README.md and Model.h say what lies where; addresses have 32 bits.

const types = {
  f32: Float32Array, f64: Float64Array, i64: BigInt64Array, i32: Int32Array,
  i8: Int8Array, u8: Uint8Array, bool: Uint8Array,
  bf16: Uint16Array, f16: Uint16Array, // caches, of which nobody asks for numbers
};

/// What models call of libm, where WebAssembly has no instruction.
function mathFunction(name) {
  const known = {fmod: (a, b) => a % b, round: x => Math.sign(x) * Math.floor(Math.abs(x) + 0.5)};
  const plain = name.replace(/f$/, "");
  const found = known[plain] ?? known[name] ?? Math[plain];
  if (!found) throw new Error(`the model calls ${name}, which nobody has`);
  return found;
}

/// The model of two files' bytes, model.wasm and model.wasm.weights. A page may
/// compile 8 MB at once; a model's code is some hundred kilobytes.
export function open(code, weightFile) {
  const module = new WebAssembly.Module(code);
  let memory, top;
  const frames = [];
  const allocate = (bytes, alignment = 64) => {
    const address = Math.ceil(top / alignment) * alignment;
    top = address + bytes;
    const missing = top - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    return address;
  };
  // One thread, which claims every iteration between two barriers itself.
  let claimed = 0n;
  const runtime = {
    attune_rt_thread() { return 0n; },
    attune_rt_num_threads() { return 1n; },
    attune_rt_claim(total) { return claimed < total ? claimed++ : total; },
    attune_rt_barrier() { claimed = 0n; },
    attune_rt_frame_push(bytes) {
      frames.push(top);
      return allocate(Number(bytes));
    },
    attune_rt_frame_pop() { top = frames.pop(); },
  };
  const env = {};
  for (const {name} of WebAssembly.Module.imports(module))
    env[name] = runtime[name] ?? mathFunction(name);
  const {exports} = new WebAssembly.Instance(module, {env});
  memory = exports.memory;
  top = exports.__heap_base.value;

  // Growing memory moves it: what reads or writes asks for it anew.
  const load = address => new DataView(memory.buffer).getUint32(address, true);
  const store = (address, value) => new DataView(memory.buffer).setBigInt64(address, BigInt(value), true);

  // attune_model_descriptor
  const descriptor = exports.attune_model.value, entries = load(descriptor + 24);
  const text = new Uint8Array(memory.buffer, load(descriptor + 8), load(descriptor + 16));
  const metadata = JSON.parse(new TextDecoder().decode(text));

  /// A memref descriptor of dense data: two pointers, the offset, sizes, strides.
  const describe = (data, shape) => {
    const address = allocate(16 + 16 * shape.length);
    new Uint32Array(memory.buffer, address, 2).fill(data);
    store(address + 8, 0);
    for (let axis = shape.length, stride = 1; axis-- > 0; stride *= shape[axis]) {
      store(address + 16 + 8 * axis, shape[axis]);
      store(address + 16 + 8 * (shape.length + axis), stride);
    }
    return address;
  };

  // The blob of weights: the file's last 32 bytes say where it is.
  const trailer = new DataView(weightFile.buffer, weightFile.byteOffset + weightFile.byteLength - 32);
  const start = Number(trailer.getBigUint64(0, true)), size = Number(trailer.getBigUint64(8, true));
  const weights = allocate(size, 4096);
  new Uint8Array(memory.buffer, weights, size).set(weightFile.subarray(start, start + size));
  const blob = describe(weights, [size]);

  /// A tensor in the model's memory.
  const makeTensor = (dtype, shape) => {
    const type = types[dtype];
    if (!type) throw new Error(`JavaScript has no ${dtype}`);
    const count = shape.reduce((a, b) => a * b, 1);
    const data = allocate(count * type.BYTES_PER_ELEMENT);
    return {shape, descriptor: describe(data, shape), values: () => new type(memory.buffer, data, count)};
  };

  const entryOf = name => {
    const number = metadata.entries.findIndex(entry => entry.name === name);
    if (number < 0) throw new Error(`the model has no entry '${name}'`);
    return {number, args: metadata.entries[number].args};
  };
  const sizesOf = (shape, sizes) => shape.map(size => sizes[size] ?? size);

  /// The caches of an entry, for batch and capacity.
  const makeCaches = (name, sizes) => Object.fromEntries(
      entryOf(name).args.filter(arg => arg.kind === "cache")
          .map(arg => [arg.name, makeTensor(arg.dtype, sizesOf(arg.shape, sizes))]));

  /// One call. `inputs` has {shape, values} by name and `sizes` what cannot be
  /// read off them; gives the outputs like that.
  const call = (name, inputs, {sizes = {}, past = 0, caches = {}} = {}) => {
    const {number, args} = entryOf(name);
    const before = top, outputs = {};
    sizes = {...sizes};
    for (const arg of args)
      if (arg.kind === "input" && inputs[arg.name])
        arg.shape.forEach((size, axis) => {
          if (typeof size === "string") sizes[size] = inputs[arg.name].shape[axis];
        });
    const addresses = args.map(arg => {
      if (arg.kind === "weights") return blob;
      if (arg.kind === "cache") return caches[arg.name].descriptor;
      if (arg.kind === "past") {
        const address = allocate(8);
        store(address, past);
        return address;
      }
      const shape = sizesOf(arg.shape, sizes);
      const tensor = makeTensor(arg.dtype, shape);
      if (arg.kind === "output") {
        outputs[arg.name] = tensor;
      } else if (inputs[arg.name]) {
        tensor.values().set(inputs[arg.name].values);
      } else if (arg.default === "ones") {
        tensor.values().fill(1);
      } else if (arg.default === "iota") {
        const values = tensor.values(), last = shape[shape.length - 1];
        for (let i = 0; i < values.length; ++i) values[i] = BigInt(i % last + past);
      } else {
        throw new Error(`the input '${arg.name}' is missing`);
      }
      return tensor.descriptor;
    });
    const table = allocate(4 * addresses.length);
    new Uint32Array(memory.buffer, table, addresses.length).set(addresses);
    exports.__indirect_function_table.get(load(entries + 4 * number))(table);
    for (const key of Object.keys(outputs))
      outputs[key] = {shape: outputs[key].shape, values: outputs[key].values().slice()};
    top = before;
    return outputs;
  };
  return {metadata, call, makeCaches};
}

/// The likeliest tokens after `ids`, one at a time, through the caches.
export function generate(model, ids, count) {
  const capacity = ids.length + count, made = [];
  const caches = model.makeCaches("decode", {batch: 1, capacity});
  let next = ids, past = 0;
  while (made.length < count) {
    const inputs = {input_ids: {shape: [1, next.length], values: next.map(BigInt)}};
    const {logits} = model.call("decode", inputs, {sizes: {capacity}, past, caches});
    past += next.length;
    const best = logits.values.indexOf(logits.values.reduce((a, b) => Math.max(a, b)));
    if (model.metadata.generation.eos.includes(best)) break;
    made.push(best);
    next = [best];
  }
  return made;
}
