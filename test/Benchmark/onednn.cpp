//===- onednn.cpp - Products and attention of oneDNN, to be timed ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// rivals.py compiles this where oneDNN's headers are installed, version 2 or 3.
// Weights lie as the library likes them best, which is not timed; activations
// and results lie in rows, as they do for Attune.

#include <oneapi/dnnl/dnnl.hpp>

#include <cmath>
#include <memory>
#include <unordered_map>
#include <vector>

namespace {
struct Step {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

struct Prepared {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Step> steps;
};
} // namespace

/// y [m, n] in f32 = x [m, k] times w [n, k] transposed, both bf16 if `narrow`.
/// Null if the library cannot.
extern "C" void *onednn_prepare_product(int64_t m, int64_t n, int64_t k,
                                        bool narrow, void *x, void *w,
                                        void *y) try {
  using namespace dnnl;
  auto type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  using Tag = memory::format_tag;
  auto product = std::make_unique<Prepared>();
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
  product->steps = {{matmul(chosen),
                     {{DNNL_ARG_SRC, memory(rows, product->engine, x)},
                      {DNNL_ARG_WEIGHTS, packed},
                      {DNNL_ARG_DST, memory(result, product->engine, y)}}}};
  return product.release();
} catch (const dnnl::error &) {
  return nullptr;
}

/// y = softmax(q k^T / sqrt(width)) v, each [heads, tokens, width], in three
/// steps with all scores in memory, all of them bf16 if `narrow`. Null if the
/// library cannot.
extern "C" void *onednn_prepare_attention(int64_t heads, int64_t tokens,
                                          int64_t width, bool narrow, void *q,
                                          void *k, void *v, void *y) try {
  using namespace dnnl;
  auto type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  using Tag = memory::format_tag;
  auto attention = std::make_unique<Prepared>();
  engine &engine = attention->engine;
  memory::desc rows({heads, tokens, width}, type, Tag::abc),
      turned({heads, width, tokens}, type, Tag::acb),
      square({heads, tokens, tokens}, type, Tag::abc);
  post_ops scaling;
  float scale = 1 / std::sqrt(float(width));
#if DNNL_VERSION_MAJOR >= 3
  scaling.append_eltwise(algorithm::eltwise_linear, scale, 0);
#else
  scaling.append_eltwise(1, algorithm::eltwise_linear, scale, 0);
#endif
  primitive_attr scaled;
  scaled.set_post_ops(scaling);
#if DNNL_VERSION_MAJOR >= 3
  matmul::primitive_desc similarity(engine, rows, turned, square, scaled),
      weighing(engine, square, rows, rows);
  softmax_forward::primitive_desc softmax(engine, prop_kind::forward_inference,
                                          algorithm::softmax_accurate, square,
                                          square, 2);
#else
  matmul::primitive_desc similarity(matmul::desc(rows, turned, square), scaled,
                                    engine),
      weighing(matmul::desc(square, rows, rows), engine);
  softmax_forward::primitive_desc softmax(
      softmax_forward::desc(prop_kind::forward_inference, square, 2), engine);
#endif
  memory scores(square, engine), out(rows, engine, y);
  attention->steps = {{matmul(similarity),
                       {{DNNL_ARG_SRC, memory(rows, engine, q)},
                        {DNNL_ARG_WEIGHTS, memory(turned, engine, k)},
                        {DNNL_ARG_DST, scores}}},
                      {softmax_forward(softmax),
                       {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}}},
                      {matmul(weighing),
                       {{DNNL_ARG_SRC, scores},
                        {DNNL_ARG_WEIGHTS, memory(rows, engine, v)},
                        {DNNL_ARG_DST, out}}}};
  return attention.release();
} catch (const dnnl::error &) {
  return nullptr;
}

extern "C" void onednn_run(void *prepared) {
  auto &all = *static_cast<Prepared *>(prepared);
  for (Step &step : all.steps)
    step.primitive.execute(all.stream, step.arguments);
  all.stream.wait();
}

extern "C" void onednn_free(void *prepared) {
  delete static_cast<Prepared *>(prepared);
}
