//===- onednn.cpp - Matrix products of oneDNN, to be timed ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// rivals.py compiles this where oneDNN's headers are installed, version 2 or 3.
// Weights lie as the library likes them best, which is not timed; activations
// and results lie in rows, as they do for Attune.

#include <oneapi/dnnl/dnnl.hpp>

#include <unordered_map>
#include <vector>

namespace {
struct Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};
} // namespace

/// y [m, n] in f32 = x [m, k] times w [n, k] transposed, both bf16 if `narrow`.
/// Null if the library cannot.
extern "C" void *onednn_prepare(int64_t m, int64_t n, int64_t k, bool narrow,
                                void *x, void *w, void *y) try {
  using namespace dnnl;
  auto type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  using Tag = memory::format_tag;
  auto *product = new Product;
  memory::desc rows({m, k}, type, Tag::ab), plain({k, n}, type, Tag::ba),
      any({k, n}, type, Tag::any),
      result({m, n}, memory::data_type::f32, Tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  matmul::primitive_desc chosen(product->engine, rows, any, result);
#else
  matmul::primitive_desc chosen(matmul::desc(rows, any, result),
                                product->engine);
#endif
  memory weights(plain, product->engine, w);
  memory packed(chosen.weights_desc(), product->engine);
  reorder(weights, packed).execute(product->stream, weights, packed);
  product->stream.wait();
  product->primitive = matmul(chosen);
  product->arguments = {{DNNL_ARG_SRC, memory(rows, product->engine, x)},
                        {DNNL_ARG_WEIGHTS, packed},
                        {DNNL_ARG_DST, memory(result, product->engine, y)}};
  return product;
} catch (const dnnl::error &) {
  return nullptr;
}

extern "C" void onednn_run(void *prepared) {
  auto &product = *static_cast<Product *>(prepared);
  product.primitive.execute(product.stream, product.arguments);
  product.stream.wait();
}

extern "C" void onednn_free(void *prepared) {
  delete static_cast<Product *>(prepared);
}
